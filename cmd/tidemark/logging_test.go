package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"
)

func TestLogsShowDurationsWithTheirUnit(t *testing.T) {
	for kind, want := range map[string]string{"json": `"after":"1.5s"`, "text": "after=1.5s"} {
		var out bytes.Buffer
		newLogger(Logging{Level: "info", Type: kind}, &out, io.Discard).Info("step recovered", "after", 1500*time.Millisecond, "attempts", 2)
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("%s: got %s, want %s", kind, out.String(), want)
		}
		if kind == "json" && !json.Valid(out.Bytes()) {
			t.Errorf("not JSON: %s", out.String())
		}
	}
}
