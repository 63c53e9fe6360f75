// Package testbucket runs a real S3-compatible server, versitygw, for tests,
// and a proxy that spoils the way to it. The server's binary is built by
// "make tools"; a test that needs it fails without, it does not skip.
package testbucket

import (
	"context"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What every Gateway is configured with.
const (
	Bucket    = "tidemark"
	Region    = "us-east-1"
	AccessKey = "tidemark-test"
	SecretKey = "tidemark-test-secret"
)

const startTimeout = 20 * time.Second

// Server is one gateway. Port and stored objects stay the same over Stop,
// Kill and Start.
type Server struct {
	t    testing.TB
	bin  string
	root string // the backend: one directory a bucket
	addr string
	log  string // path
	cert string // directory of cert.pem and key.pem; empty: plain HTTP
	cmd  *exec.Cmd
}

// Gateway starts a server that the cleanup of the test stops. When the test
// fails, the server's log is part of the test's.
func Gateway(t testing.TB) *Server {
	t.Helper()
	return launch(t, "")
}

// GatewayTLS is Gateway over HTTPS with the certificate cert.pem and the key
// key.pem of the directory cert.
func GatewayTLS(t testing.TB, cert string) *Server {
	t.Helper()
	return launch(t, cert)
}

func launch(t testing.TB, cert string) *Server {
	t.Helper()
	dir := t.TempDir()
	s := &Server{t: t, bin: binary(t), root: filepath.Join(dir, "buckets"), addr: freeAddr(t), log: filepath.Join(dir, "log"), cert: cert}
	if err := os.MkdirAll(filepath.Join(s.root, Bucket), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if content, err := os.ReadFile(s.log); err == nil && t.Failed() {
			t.Logf("versitygw on %s:\n%s", s.addr, content[max(0, len(content)-2000):])
		}
	})
	s.Start()
	return s
}

// Start runs the server again after Stop or Kill, and returns when it answers.
func (s *Server) Start() {
	s.t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	args := []string{"--port", s.addr, "--region", Region, "--keep-alive"}
	if s.cert != "" {
		args = append(args, "--cert", filepath.Join(s.cert, "cert.pem"), "--key", filepath.Join(s.cert, "key.pem"))
	}
	s.cmd = exec.Command(s.bin, append(args, "posix", s.root)...)
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = dieWithParent()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("start versitygw: %v", err)
	}
	s.await()
}

// await polls until the port takes connections.
func (s *Server) await() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("versitygw does not answer on %s: %v", s.addr, err)
		case <-tick.C:
		}
	}
}

// Stop ends the server in good order.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the server at once (SIGKILL).
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

func (s *Server) end(signal os.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(signal)
	_ = s.cmd.Wait() // its exit status is the signal's
	s.cmd = nil
}

// Endpoint is the server's URL without bucket.
func (s *Server) Endpoint() string {
	if s.cert != "" {
		return "https://" + s.addr
	}
	return "http://" + s.addr
}

// URL is the replica URL of a prefix in the server's bucket.
func (s *Server) URL(prefix string) string { return URL(s.Endpoint(), prefix) }

// Root is the directory in which the bucket's objects are files.
func (s *Server) Root() string { return filepath.Join(s.root, Bucket) }

// Env is what a process needs to use the server, and keeps the settings of
// whoever runs the tests away from it.
func (s *Server) Env() []string { return Env() }

// URL is the replica URL of a prefix at an endpoint, a Proxy's for instance.
func URL(endpoint, prefix string) string {
	query := url.Values{"endpoint": {endpoint}, "region": {Region}, "force-path-style": {"true"}}
	u := url.URL{Scheme: "s3", Host: Bucket, Path: path.Join("/", prefix), RawQuery: query.Encode()}
	return u.String()
}

// Env is the environment of every Gateway's clients.
func Env() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + AccessKey,
		"AWS_SECRET_ACCESS_KEY=" + SecretKey,
		"AWS_SESSION_TOKEN=",
		"AWS_PROFILE=",
		"AWS_CONFIG_FILE=" + os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// binary finds the server below the root of the repository.
func binary(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's directory")
		}
		dir = parent
	}
	bin := filepath.Join(dir, ".cache", "bin", "versitygw")
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("%v: run make tools", err)
	}
	return bin
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
