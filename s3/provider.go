package s3

import "strings"

// provider is what a service does otherwise than AWS, as far as it matters
// here. A service without an entry is taken to behave like AWS.
type provider struct {
	suffix       string // of the endpoint's host
	region       string // used when none is set
	noBatch      bool   // DeleteObjects does not exist
	noConditions string // why conditional writes cannot be trusted; empty: they can
}

// providerOf finds the entry of an endpoint's host.
func providerOf(host string) provider {
	for _, p := range []provider{
		{suffix: ".r2.cloudflarestorage.com", region: "auto"},
		{suffix: "storage.googleapis.com", region: "auto", noBatch: true,
			noConditions: "Google Cloud Storage ignores the conditions of S3 writes without an error"},
		{suffix: ".backblazeb2.com", noConditions: "Backblaze B2 has no conditional writes"},
	} {
		if strings.HasSuffix(host, p.suffix) {
			return p
		}
	}
	return provider{region: "us-east-1"}
}

// isAWS says whether an endpoint's host is AWS's own.
func isAWS(host string) bool {
	return strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn")
}
