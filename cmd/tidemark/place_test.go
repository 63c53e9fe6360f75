package main

import (
	"strings"
	"testing"
)

func TestMisspelledURLsAreNoDirectories(t *testing.T) {
	for _, raw := range []string{
		"s3:/b/x", "s3:b/x", "s3//b/x", "S3://b/x", "s3:///", "S3//b", "file:/abs", "file:abs", "file//abs", "FILE:///abs", "http://h/b", "gs://b/x", "c:x",
		"s3:/b/x?secret-access-key=hunter2", "s3//b/x?secret-access-key=hunter2", "s3:/id:hunter2@b/x", "s3//id:hunter2@b/x",
		"file://h/b?hunter2", "file:///b?hunter2", "s3://b/x?secret-access-key=hunter2", "s4:/b?x=://hunter2", "file://%zz?hunter2",
	} {
		_, err := singleDatabase("app.db", raw)
		if err == nil {
			t.Errorf("%s: taken", raw)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows a secret: %v", raw, err)
		}
		if !strings.Contains(err.Error(), "file:///abs/dir") && !strings.Contains(err.Error(), "s3://BUCKET") && !strings.Contains(raw, "?") {
			t.Errorf("%s: the error does not say the right form: %v", raw, err)
		}
	}
}

func TestPathsWithOddNamesAreDirectories(t *testing.T) {
	for _, raw := range []string{"b", "./s3:x", "/abs/s3:/b", "a/b:c", "1:2", "s3/x", "s3", "~/b", "file/x", "/a//b"} {
		if d, err := singleDatabase("app.db", raw); err != nil || d.Replica.Type != typeFile {
			t.Errorf("%s: got %q, %v", raw, d.Replica.Type, err)
		}
	}
}

func TestURLsUnderPathAreRefused(t *testing.T) {
	d := Database{Path: "app.db"}
	d.Replica.S3.Prefix = "s3://bucket/p?x=hunter2"
	err := d.normalize(Config{})
	if err == nil || !strings.Contains(err.Error(), "give it as url") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
