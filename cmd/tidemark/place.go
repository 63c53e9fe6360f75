package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// schemeStart is how URLs begin, and misspelled ones.
	schemeStart = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/*`)
	// lostColon is a URL of ours without its colon.
	lostColon = regexp.MustCompile(`^(?i:s3|file)//+`)
)

// looksLikeURL tells a URL, well or badly written, from a path.
func looksLikeURL(raw string) bool { return schemeStart.MatchString(raw) || lostColon.MatchString(raw) }

// misspelled refuses what is no path and no URL of a known kind: taken as a
// path it would make a local directory of that name.
func misspelled(raw string) error {
	if !looksLikeURL(raw) || strings.HasPrefix(raw, typeFile+"://") || strings.HasPrefix(raw, typeS3+"://") {
		return nil
	}
	return fmt.Errorf("%q is no kind of replica; use file:///abs/dir or s3://bucket/prefix, "+
		"or write ./ before the name of a directory", urlStart(raw))
}

// urlStart is what tells the kind of a URL.
func urlStart(raw string) string {
	if start := lostColon.FindString(raw); start != "" {
		return start
	}
	return schemeStart.FindString(raw)
}

// withoutQuery is a URL or a path fit to be shown, whatever is in it.
func withoutQuery(raw string) string {
	path, _, _ := strings.Cut(raw, "?")
	if !looksLikeURL(path) {
		return path
	}
	start := urlStart(path)
	rest := path[len(start):]
	return start + rest[strings.LastIndexByte(rest, '@')+1:]
}
