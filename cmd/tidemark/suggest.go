package main

import (
	"fmt"

	"github.com/agnivade/levenshtein"
)

// suggestion is ` (did you mean "x"?)` with the candidate closest to word, or
// empty when none is close.
func suggestion(word string, candidates []string) string {
	best, least := "", 1+max(2, len(word)/3)
	for _, candidate := range candidates {
		if d := levenshtein.ComputeDistance(word, candidate); d < least {
			best, least = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
