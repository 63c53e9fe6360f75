package s3_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// keyFile is a shared credentials file, the only source of credentials.
func keyFile(t *testing.T) (write func(access, secret string)) {
	t.Helper()
	environment(t)
	name := filepath.Join(t.TempDir(), "credentials")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", name)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	return func(access, secret string) {
		text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", access, secret)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func openPlain(t *testing.T, url string) *s3.Bucket {
	t.Helper()
	c, err := s3.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s3.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChangedKeyFileIsReadAgain(t *testing.T) {
	gateway := testbucket.Gateway(t)
	writeKeys := keyFile(t)
	for _, wrong := range [][2]string{{"unknown-key", "x"}, {testbucket.AccessKey, "wrong-secret"}} {
		writeKeys(wrong[0], wrong[1])
		b := openPlain(t, gateway.URL("p"))
		_, err := b.Put(t.Context(), "a", strings.NewReader("x"), storage.Condition{})
		if !errors.Is(err, storage.ErrForbidden) || strings.Contains(err.Error(), wrong[1]+" ") {
			t.Errorf("wrong keys: got %v", err)
		}
		writeKeys(testbucket.AccessKey, testbucket.SecretKey)
		if _, err := b.Put(t.Context(), "a", strings.NewReader("x"), storage.Condition{}); err != nil {
			t.Errorf("right keys: %v", err)
		}
	}
}

func TestExpiredTokenIsReplacedWithinTheCall(t *testing.T) {
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	writeKeys := keyFile(t)
	writeKeys("old-key", "x")
	b := openPlain(t, p.URL("p"))
	p.Inject(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Header.Get("Authorization"), "old-key") {
				writeKeys(testbucket.AccessKey, testbucket.SecretKey)
				status(http.StatusBadRequest, "<Error><Code>ExpiredToken</Code><Message>expired</Message></Error>")(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	if _, err := b.Put(t.Context(), "a", strings.NewReader("x"), storage.Condition{Absent: true}); err != nil {
		t.Errorf("put: %v", err)
	}
	if got := p.Requests(""); got != 2 {
		t.Errorf("%d requests, want 2", got)
	}
}

func TestKeysInTheConfigurationComeFirst(t *testing.T) {
	gateway := testbucket.Gateway(t)
	environment(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "other")
	c, err := s3.ParseURL(gateway.URL("p"))
	if err != nil {
		t.Fatal(err)
	}
	c.AccessKeyID, c.SecretAccessKey = testbucket.AccessKey, testbucket.SecretKey
	b, err := s3.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	store(t, b, "a", "x")
}

func TestMissingCredentialsSayWhatToSet(t *testing.T) {
	gateway := testbucket.Gateway(t)
	environment(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	b := openPlain(t, gateway.URL("p"))
	_, err := b.Put(t.Context(), "a", strings.NewReader("x"), storage.Condition{})
	if err == nil || !strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v", err)
	}
}
