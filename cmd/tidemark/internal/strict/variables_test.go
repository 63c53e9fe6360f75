package strict_test

import (
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/strict"
)

func variables(name string) (string, bool) {
	value, ok := map[string]string{
		"A": "a", "HASH": "pass #word", "STAR": "*x", "AT": "@x", "LIST": "[x", "COLON": "k: v", "QUOTES": `"'`, "DOLLAR": "$A ${A}",
		"EMPTY": "", "TRUE": "true", "YES": "yes", "FOUR": "4", "FIVE": "5s", "LINES": "a\nb",
	}[name]
	return value, ok
}

func TestValuesOfVariablesAreNeverReadAsYAML(t *testing.T) {
	for text, want := range map[string]string{
		"$HASH": "pass #word", "${STAR}": "*x", "$AT": "@x", "${LIST}": "[x", "$COLON": "k: v", "${QUOTES}": `"'`, `"${QUOTES}"`: `"'`,
		"${DOLLAR}": "$A ${A}", "p/${A}b/$A": "p/ab/a", "'${A}'": "a", "$A # $NONE": "a", "pa$$w": "pa$w", "$${A}": "${A}",
		"a${EMPTY}b": "ab", "|\n  x ${A}\n": "x a\n", "$FOUR": "4",
	} {
		var got settings
		d := strict.Decoder{Lookup: variables}
		if err := d.Decode([]byte("# $NONE ${NONE}\nname: "+text+"\n"), &got); err != nil || got.Name != want {
			t.Errorf("%s: got %q, %v; want %q", text, got.Name, err, want)
		}
	}
}

func TestVariablesMayBeNumbersAndSwitchesAndStandInFlows(t *testing.T) {
	var got settings
	d := strict.Decoder{Lookup: variables}
	err := d.Decode([]byte("{count: ${FOUR}, wait: ${FIVE}, on-or-off: ${TRUE}, items: [{path: ${A}/x, size: $FOUR}]}"), &got)
	if err != nil || got.Base.Count != 4 || got.Wait.String() != "5s" || !got.Base.On || got.Items[0] != (item{"a/x", 4}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestVariablesThatCannotBeUsedAreNamedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\ncount: ${NONE}":        `line 2: count: the environment variable "NONE" is not set; set it, or write $$ for a dollar sign`,
		"items:\n- path: $NONE-$MISSING": `line 2: items[0].path: the environment variable "MISSING"`,
		"name: $LINES":                   `line 1: name: the environment variable "LINES" has more than one line`,
		"count: $EMPTY":                  "count: want a whole number",
		"on-or-off: $YES":                "want true or false",
	} {
		var got settings
		err := strict.Decoder{Lookup: variables}.Decode([]byte(text), &got)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestVariablesAreLeftAloneWithoutLookup(t *testing.T) {
	var got settings
	if err := (strict.Decoder{}).Decode([]byte("name: ${A}$$\n"), &got); err != nil || got.Name != "${A}$$" {
		t.Errorf("got %q, %v", got.Name, err)
	}
}
