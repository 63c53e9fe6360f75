package main

import (
	"strings"
	"testing"
)

func TestTheLeaseIsAboveAllReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		urls []string
		want string // of the place; empty: refused
	}{
		"one directory":      {[]string{"/lake/db"}, "file:///lake/db"},
		"one prefix":         {[]string{"s3://lake/a/b?region=x"}, "s3://lake/a/b"},
		"a whole bucket":     {[]string{"s3://lake?region=x"}, "s3://lake/"},
		"neighbors":          {[]string{"/lake/db", "/lake/db2"}, "file:///lake"},
		"one in the other":   {[]string{"s3://lake/a/b?region=x", "s3://lake/a?region=x"}, "s3://lake/a"},
		"nothing in common":  {[]string{"/lake/db", "/other/db"}, ""},
		"only the bucket":    {[]string{"s3://lake/a?region=x", "s3://lake/b?region=x"}, ""},
		"two buckets":        {[]string{"s3://lake/a?region=x", "s3://lakes/a?region=x"}, ""},
		"two services":       {[]string{"s3://lake/a?endpoint=http://one", "s3://lake/a?endpoint=http://two"}, ""},
		"two kinds":          {[]string{"s3://lake/a?region=x", "/lake/a"}, ""},
		"none":               {nil, ""},
		"three with a stray": {[]string{"/lake/a/x", "/lake/a/y", "/lake/b"}, "file:///lake"},
	} {
		t.Run(name, func(t *testing.T) {
			var c Config
			for _, url := range test.urls {
				d, err := singleDatabase("app.db", url)
				if err != nil {
					t.Fatal(err)
				}
				c.Databases = append(c.Databases, d)
			}
			got, err := c.leasePlace()
			if test.want == "" {
				if err == nil {
					t.Errorf("got %s", got)
				}
			} else if err != nil || strings.TrimSuffix(got.String(), "/") != strings.TrimSuffix(test.want, "/") {
				t.Errorf("got %s and %v, want %s", got, err, test.want)
			}
		})
	}
}
