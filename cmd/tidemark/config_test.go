package main

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/strict"
	"github.com/tidemark-io/tidemark/s3"
)

const samplePath = "../../etc/tidemark.yml"

func TestSampleSettingsAreTheDefaults(t *testing.T) {
	got, err := readConfig(samplePath, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Databases = []Database{{
		Path: "/var/lib/lake/catalog.sqlite", Capture: capture.DefaultConfig(),
		Replica: Replica{Type: typeFile, URL: "file:///var/backups/lake/catalog"},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

func TestEverySettingIsInTheSample(t *testing.T) {
	text, err := os.ReadFile(samplePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range strict.Keys(reflect.TypeFor[Config]()) {
		name := key[regexp.MustCompile(`.*\.|^`).FindStringIndex(key)[1]:]
		if !regexp.MustCompile(`(?m)^[ #-]*` + name + `:|under ` + name + `$|under ` + name + `\n`).Match(text) {
			t.Errorf("%s is missing", key)
		}
	}
}

func TestRefusedKeysAreNoSettings(t *testing.T) {
	refused := refusedKeys()
	for _, key := range strict.Keys(reflect.TypeFor[Config]()) {
		if reason, ok := refused[key]; ok {
			t.Errorf("%s is a setting and refused: %s", key, reason)
		}
	}
}

func TestOwnSettingsOfAReplicaGoBeforeSharedOnes(t *testing.T) {
	shared := s3.Config{Region: "shared", Endpoint: "https://shared.example", AccessKeyID: "shared", SecretAccessKey: "shared"}
	for _, test := range []struct {
		replica Replica
		want    s3.Config
	}{
		{Replica{URL: "s3://bucket/p"}, s3.Config{Region: "shared", Endpoint: "https://shared.example", AccessKeyID: "shared"}},
		{Replica{URL: "s3://bucket/p?region=url"}, s3.Config{Region: "url", Endpoint: "https://shared.example", AccessKeyID: "shared"}},
		{Replica{URL: "s3://bucket/p?endpoint=http://url.example"}, s3.Config{Region: "shared", Endpoint: "http://url.example", AccessKeyID: "shared"}},
		{Replica{URL: "s3://my.bucket/p"}, s3.Config{Region: "shared", Endpoint: "https://shared.example", AccessKeyID: "shared"}},
		{Replica{S3: s3.Config{Bucket: "bucket", Region: "own"}}, s3.Config{Region: "own", Endpoint: "https://shared.example", AccessKeyID: "shared"}},
		{Replica{S3: s3.Config{Bucket: "bucket", AccessKeyID: "own"}}, s3.Config{Region: "shared", Endpoint: "https://shared.example", AccessKeyID: "own"}},
	} {
		r := test.replica
		if err := r.complete(shared); err != nil {
			t.Errorf("%+v: %v", test.replica, err)
			continue
		}
		got := s3.Config{Region: r.S3.Region, Endpoint: r.S3.Endpoint, AccessKeyID: r.S3.AccessKeyID}
		if got != test.want {
			t.Errorf("%+v: got %+v, want %+v", test.replica, got, test.want)
		}
		if secret := r.S3.SecretAccessKey; (secret == "shared") != (got.AccessKeyID == "shared") {
			t.Errorf("%+v: the secret %q goes with the key %q", test.replica, secret, got.AccessKeyID)
		}
	}
}
