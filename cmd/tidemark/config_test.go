package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/strict"
	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/s3"
)

const samplePath = "../../etc/tidemark.yml"

func TestSampleSettingsAreTheDefaults(t *testing.T) {
	got, err := readConfig(samplePath, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.HA.Lease.Times = want.HA.Lease.Times.WithDefaults()
	want.Databases = []Database{{
		Path: "/var/lib/lake/catalog.sqlite", Capture: capture.DefaultConfig(), compaction: compaction.DefaultConfig(),
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

func TestSharedSettingsHoldForReplicasGivenAsURL(t *testing.T) {
	yes := true
	shared := s3.Config{
		Endpoint: "https://shared.example", Region: "shared", ForcePathStyle: &yes, AccessKeyID: "id", SecretAccessKey: "key",
		SessionToken: "token", PartSize: 6 << 20, Concurrency: 2, IdleTimeout: 5 * time.Second,
	}
	for url, change := range map[string]func(*s3.Config){
		"s3://bucket/p":                                func(*s3.Config) {},
		"s3://bucket/p?part-size=7MiB":                 func(c *s3.Config) { c.PartSize = 7 << 20 },
		"s3://bucket/p?concurrency=3":                  func(c *s3.Config) { c.Concurrency = 3 },
		"s3://bucket/p?idle-timeout=6s":                func(c *s3.Config) { c.IdleTimeout = 6 * time.Second },
		"s3://bucket/p?region=own":                     func(c *s3.Config) { c.Region = "own" },
		"s3://bucket/p?endpoint=https://own.example":   func(c *s3.Config) { c.Endpoint = "https://own.example" },
		"s3://bucket/p?idle-timeout=30s&concurrency=4": func(c *s3.Config) { c.IdleTimeout, c.Concurrency = 30*time.Second, 4 },
	} {
		want := shared
		want.Bucket, want.Prefix = "bucket", "p"
		change(&want)
		r := Replica{URL: url}
		if err := r.complete(shared); err != nil || r.S3 != want {
			t.Errorf("%s: got %+v, %v; want %+v", url, r.S3, err, want)
		}
	}
	r := Replica{URL: "s3://bucket/p"}
	if err := r.complete(s3.Config{}); err != nil || r.S3 != (s3.Config{Bucket: "bucket", Prefix: "p"}).WithDefaults() {
		t.Errorf("without shared settings: got %+v, %v", r.S3, err)
	}
}

func TestSharedSettingsAreValidated(t *testing.T) {
	for _, key := range []string{"part-size: 1MiB", "part-size: 0", "concurrency: 65", "concurrency: 0", "idle-timeout: 1ms", "idle-timeout: 0s"} {
		for _, url := range []string{"s3://bucket/p", "file:///b"} {
			_, err := parseConfig([]byte(key+"\ndbs: [{path: a.db, replica: {url: \""+url+"\"}}]\n"), nil)
			name, _, _ := strings.Cut(key, ":")
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s with %s: got %v", key, url, err)
			}
		}
	}
}
