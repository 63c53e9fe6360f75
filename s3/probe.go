package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/storage"
)

// ErrUnfit is wrapped by Probe when a lease cannot be kept in a bucket, because
// of its service or of the clock of this machine. The error names the check.
var ErrUnfit = errors.New("conditional writes cannot be relied upon here")

const (
	probePrefix  = ".probe/"
	probeSlack   = 5 * time.Minute // between the clocks
	cleanupTime  = 30 * time.Second
	probeRepeats = 3 // of a step whose reply was lost
)

// ProbeResult is what a Probe has found out.
type ProbeResult struct {
	Checks []ProbeCheck
	Took   time.Duration
	Skew   time.Duration // how far the service's clock is ahead, where it tells
}

// ProbeCheck is one thing that was tried, with success.
type ProbeCheck struct {
	Name string
	Took time.Duration
}

// Probe tries whether the conditional writes of b are done, done right and done
// one at a time. It sends some 250 requests with 130 MiB in all, under a key
// of its own that it removes. It wraps ErrUnfit when a check fails; any other
// error says that nothing was found out.
func Probe(ctx context.Context, b storage.Bucket, log *slog.Logger) (ProbeResult, error) {
	p := &prober{b: b, prefix: probePrefix + strings.ToLower(rand.Text()) + "-"}
	defer p.cleanUp(ctx, log)
	began := time.Now()
	for _, c := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"create", p.create},
		{"etag", p.sameETag},
		{"create-only", p.createOnly},
		{"clock", p.clock},
		{"if-match", p.swap},
		{"if-match without the object", p.swapAbsent},
		{"create race of 4 KiB", func(ctx context.Context) error { return p.createRace(ctx, 4<<10) }},
		{"create race of 1 MiB", func(ctx context.Context) error { return p.createRace(ctx, 1<<20) }},
		{"if-match race", p.swapRace},
		{"list", p.listed},
	} {
		start := time.Now()
		if err := c.run(ctx); err != nil {
			return p.result, fmt.Errorf("probe %s: %s: %w", b, c.name, err)
		}
		p.result.Checks = append(p.result.Checks, ProbeCheck{c.name, time.Since(start)})
	}
	p.result.Took = time.Since(began)
	return p.result, nil
}

type prober struct {
	b       storage.Bucket
	prefix  string
	result  ProbeResult
	first   storage.Object // what create stored
	content string         // of it
	winners []string       // keys
}

func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnfit, fmt.Sprintf(format, args...))
}

// cleanUp removes all that the probe has left.
func (p *prober) cleanUp(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	var keys []string
	var err error
	for object, failed := range p.b.List(ctx, p.prefix, "") {
		if err = failed; err != nil {
			break
		}
		keys = append(keys, object.Key)
	}
	if len(keys) > 0 {
		err = errors.Join(err, p.b.Delete(ctx, keys...))
	}
	if err != nil && log != nil && p.first.Key != "" { // else nothing is known to be there
		log.Warn("objects of a probe were left behind", "bucket", p.b, "prefix", p.prefix, "error", err)
	}
}

func (p *prober) put(ctx context.Context, key, content string, cond storage.Condition) (storage.Object, error) {
	return p.b.Put(ctx, p.prefix+key, strings.NewReader(content), cond)
}

func (p *prober) get(ctx context.Context, key string) (string, storage.Object, error) {
	body, object, err := p.b.Get(ctx, p.prefix+key, storage.Range{})
	if err != nil {
		return "", storage.Object{}, err
	}
	content, err := io.ReadAll(io.LimitReader(body, probeBodyLimit))
	return string(content), object, errors.Join(err, body.Close())
}

// create stores an object that is not there.
func (p *prober) create(ctx context.Context) error {
	p.content = "first"
	var err error
	for n := range probeRepeats {
		key := fmt.Sprintf("created-%d", n)
		if p.first, err = p.put(ctx, key, p.content, storage.Condition{Absent: true}); err == nil {
			p.first.Key = key
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if err != nil {
		return p.refusedOrAway(ctx, err)
	}
	return nil
}

// createOnly must not store the object again.
func (p *prober) createOnly(ctx context.Context) error {
	if _, err := p.put(ctx, p.first.Key, "second", storage.Condition{Absent: true}); err == nil {
		return unfit("an object was created twice: If-None-Match is ignored")
	}
	return p.unchanged(ctx, "a create that was refused")
}

// refusedOrAway tells a service that refuses conditions from one that refuses
// everything.
func (p *prober) refusedOrAway(ctx context.Context, refusal error) error {
	if _, err := p.put(ctx, "plain", "plain", storage.Condition{}); err != nil {
		return fmt.Errorf("write without a condition: %w", err)
	}
	return unfit("writes with a condition are refused, others are not: %v", refusal)
}

// unchanged makes sure that the first object is as it was.
func (p *prober) unchanged(ctx context.Context, by string) error {
	content, object, err := p.get(ctx, p.first.Key)
	switch {
	case err != nil:
		return err
	case content != p.content:
		return unfit("%s has changed the object", by)
	case object.ETag != p.first.ETag:
		return unfit("%s has changed the ETag from %s to %s", by, p.first.ETag, object.ETag)
	}
	return nil
}

func (p *prober) sameETag(ctx context.Context) error {
	_, object, err := p.get(ctx, p.first.Key)
	if err != nil {
		return err
	}
	if object.ETag == "" || object.ETag != p.first.ETag {
		return unfit("a write answers the ETag %q, a read %q", p.first.ETag, object.ETag)
	}
	if !object.Now.IsZero() {
		p.result.Skew = time.Until(object.Now).Round(time.Second)
	}
	return nil
}

func (p *prober) clock(context.Context) error {
	if p.result.Skew.Abs() > probeSlack {
		return unfit("the clock of this machine is %s off the service's", p.result.Skew)
	}
	return nil
}

// swap replaces an object by its ETag, and must not by another one.
func (p *prober) swap(ctx context.Context) error {
	stale := p.first.ETag
	for n := 0; ; n++ {
		content := fmt.Sprintf("swapped %d", n)
		object, err := p.put(ctx, p.first.Key, content, storage.Condition{ETag: p.first.ETag})
		if err == nil {
			object.Key = p.first.Key
			p.first, p.content = object, content
			break
		}
		if err := p.reread(ctx, n, err); err != nil {
			return err
		}
	}
	if p.first.ETag == stale {
		return unfit("the ETag of other content is the same")
	}
	if err := p.unchanged(ctx, "reading right after a write: something between keeps old answers, or it"); err != nil {
		return err
	}
	for _, etag := range []string{stale, `"00000000000000000000000000000000"`} {
		if _, err := p.put(ctx, p.first.Key, "stale", storage.Condition{ETag: etag}); err == nil {
			return unfit("an object was replaced by an ETag that it does not have: If-Match is ignored")
		}
	}
	return p.unchanged(ctx, "a replacement that was refused")
}

// reread finds out what a swap has done whose reply says nothing.
func (p *prober) reread(ctx context.Context, n int, cause error) error {
	content, object, err := p.get(ctx, p.first.Key)
	switch {
	case err != nil:
		return err
	case n+1 == probeRepeats:
		return unfit("a replacement by the ETag of the object is refused: %v", cause)
	}
	p.content, p.first.ETag = content, object.ETag
	return nil
}

func (p *prober) swapAbsent(ctx context.Context) error {
	if _, err := p.put(ctx, "absent", "x", storage.Condition{ETag: p.first.ETag}); err == nil {
		return unfit("an object that is not there was replaced")
	}
	_, _, err := p.get(ctx, "absent")
	switch {
	case err == nil:
		return unfit("a replacement that was refused has stored the object")
	case errors.Is(err, storage.ErrNotFound):
		return nil
	}
	return err
}
