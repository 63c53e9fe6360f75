package s3

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// chain is the standard credential chain, read again after the service
// refused what it gave: keys in files change while a process runs. It also
// signs, because a signer remembers the secret of a key ID.
type chain struct {
	load func(context.Context) (aws.Config, error)

	mu      sync.Mutex
	current aws.CredentialsProvider // nil: read again
	signer  *v4.Signer
}

func newChain(load func(context.Context) (aws.Config, error), current aws.CredentialsProvider) *chain {
	return &chain{load: load, current: current, signer: newSigner()}
}

// Retrieve returns the credentials to sign with.
func (c *chain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c.mu.Lock()
	provider := c.current
	c.mu.Unlock()
	if provider == nil {
		shared, err := c.load(ctx)
		if err != nil {
			return aws.Credentials{}, err
		}
		provider = shared.Credentials
		c.mu.Lock()
		c.current = provider
		c.mu.Unlock()
	}
	value, err := provider.Retrieve(ctx)
	if err != nil {
		return value, fmt.Errorf("%w: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role: %w", errNoCredentials, err)
	}
	return value, nil
}

// SignHTTP signs a request.
func (c *chain) SignHTTP(ctx context.Context, creds aws.Credentials, r *http.Request, payload, service, region string,
	at time.Time, options ...func(*v4.SignerOptions)) error {
	c.mu.Lock()
	signer := c.signer
	c.mu.Unlock()
	return signer.SignHTTP(ctx, creds, r, payload, service, region, at, options...)
}

// invalidate makes the next Retrieve read the chain again.
func (c *chain) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.signer = nil, newSigner()
}

// newSigner signs the way S3 wants it: paths are escaped once.
func newSigner() *v4.Signer {
	return v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
}
