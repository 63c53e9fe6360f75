package s3_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/storage"
)

func TestOwnAuthorityIsTrustedThroughTheEnvironment(t *testing.T) {
	certificate := testbucket.Certificate(t)
	gateway := testbucket.GatewayTLS(t, certificate)
	environment(t)
	t.Setenv("AWS_CA_BUNDLE", filepath.Join(certificate, "cert.pem"))
	b := openPlain(t, gateway.URL("p"))
	store(t, b, "a", strings.Repeat("content", 100_000))
	if got, err := load(t, b, "a"); err != nil || len(got) != 700_000 {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestUnknownAuthorityIsRefused(t *testing.T) {
	gateway := testbucket.GatewayTLS(t, testbucket.Certificate(t))
	environment(t)
	t.Setenv("AWS_CA_BUNDLE", filepath.Join(testbucket.Certificate(t), "cert.pem"))
	b := openPlain(t, gateway.URL("p"))
	_, err := b.Put(t.Context(), "a", strings.NewReader("x"), storage.Condition{})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}
