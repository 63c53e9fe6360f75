package s3

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// chain is the standard credential chain, read again after the service
// refused what it gave: keys in files change while a process runs.
type chain struct {
	load func(context.Context) (aws.Config, error)

	mu      sync.Mutex
	current aws.CredentialsProvider // nil: read again
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

// invalidate makes the next Retrieve read the chain again.
func (c *chain) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = nil
}
