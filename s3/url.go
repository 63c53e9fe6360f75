package s3

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseURL reads s3://BUCKET/PREFIX?endpoint=...&region=...; what the URL does not
// name stays zero, see WithDefaults. Settings may be written in kebab or in camel case. Credentials in a URL are
// refused, and no error repeats them.
func ParseURL(raw string) (Config, error) {
	rest, ok := strings.CutPrefix(raw, "s3://")
	if !ok {
		return Config{}, errors.New("not an S3 URL: write s3://BUCKET/PREFIX")
	}
	// A secret may have a slash in it, so the @ may be anywhere.
	if authority, _, _ := strings.Cut(rest, "/"); strings.Contains(authority, ":") && strings.Contains(rest, "@") {
		return Config{}, errSecret()
	}
	u, err := url.Parse(raw)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // without the URL, which may hold more than it should
		}
		return Config{}, fmt.Errorf("S3 URL: %w", err)
	}
	if u.User != nil {
		return Config{}, errSecret()
	}
	if u.Fragment != "" {
		return Config{}, errors.New("S3 URL: has a fragment (#); write %23 for a # in a name")
	}
	c, err := read(u, Config{})
	if err != nil {
		return Config{}, fmt.Errorf("S3 URL: %w", err)
	}
	// Over the defaults, because a zero that the URL names is no setting.
	whole, err := read(u, DefaultConfig())
	if err := errors.Join(err, doubtful(u, c), whole.Validate()); err != nil {
		return Config{}, fmt.Errorf("S3 URL: %w", err)
	}
	return c, nil
}

// read puts what the URL says over c.
func read(u *url.URL, c Config) (Config, error) {
	c.Bucket, c.Prefix = u.Host, strings.Trim(u.Path, "/")
	return c, c.query(u.RawQuery)
}

// doubtful refuses hosts that may be meant as servers: a guess could send the
// data to a bucket of that name at AWS.
func doubtful(u *url.URL, c Config) error {
	if u.Port() != "" || strings.HasSuffix(u.Host, ":") {
		return fmt.Errorf("%s looks like a server: write s3://BUCKET/PREFIX?endpoint=http://%s", u.Host, u.Host)
	}
	if strings.Contains(u.Host, ".") && c.Endpoint == "" && checkBucket(u.Host) == nil {
		return fmt.Errorf("%s may be a server or a bucket: if a server, write s3://BUCKET/PREFIX?endpoint=https://%s; "+
			"if a bucket, name its server too, such as endpoint=https://s3.us-east-1.amazonaws.com", u.Host, u.Host)
	}
	return nil
}

func (c *Config) query(raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return errors.New("query: not well-formed")
	}
	for name, all := range values {
		if isSecret(name) {
			return errSecret()
		}
		if len(all) != 1 {
			return fmt.Errorf("%s is given %d times", name, len(all))
		}
		if err := c.set(kebab(name), all[0]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) set(name, value string) (err error) {
	switch name {
	case "endpoint":
		c.Endpoint = value
	case "region":
		c.Region = value
	case "force-path-style":
		var force bool
		force, err = strconv.ParseBool(value)
		c.ForcePathStyle = &force
	case "part-size":
		if err := c.PartSize.UnmarshalText([]byte(value)); err != nil {
			return fmt.Errorf("part-size: %w", err)
		}
	case "concurrency":
		c.Concurrency, err = strconv.Atoi(value)
	case "idle-timeout":
		c.IdleTimeout, err = time.ParseDuration(value)
	default:
		return fmt.Errorf("unknown setting %q: there are endpoint, region, force-path-style, part-size, concurrency and idle-timeout", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %q is not a value for it", name, value)
	}
	return nil
}

// kebab turns forcePathStyle into force-path-style.
func kebab(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isSecret(name string) bool {
	plain := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
	return slices.ContainsFunc([]string{"accesskey", "secret", "token", "password", "credential", "signature"}, func(word string) bool {
		return strings.Contains(plain, word)
	})
}

func errSecret() error {
	return errors.New("S3 URL: credentials do not belong in URLs, which end up in logs and process lists: " +
		"use AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or access-key-id and secret-access-key in the configuration file")
}
