package storage

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what happens to buckets, all of a process together.
type Metrics struct {
	duration *prometheus.HistogramVec // its count is the number of operations
	failed   *prometheus.CounterVec
	bytes    *prometheus.CounterVec
}

// NewMetrics registers the metrics with reg, which takes them once; nil gives
// metrics that nobody sees.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	factory := promauto.With(reg)
	return &Metrics{
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tidemark_bucket_request_seconds",
			Help:    "Time of bucket operations; of a get, until its body is open; of a list, without the time its reader takes.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12), // 1 ms to 24 s
		}, []string{"operation"}),
		failed: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_bucket_errors_total",
			Help: "Bucket operations that ended in an error, by its kind.",
		}, []string{"operation", "kind"}),
		bytes: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_bucket_bytes_total",
			Help: "Bytes of object content read and stored.",
		}, []string{"operation"}),
	}
}

// Observed is b with its operations counted in m.
func (m *Metrics) Observed(b Bucket) Bucket { return &observed{Bucket: b, Metrics: m} }

// Observed counts what happens to b in metrics registered with reg.
func Observed(b Bucket, reg prometheus.Registerer) Bucket { return NewMetrics(reg).Observed(b) }

type observed struct {
	Bucket
	*Metrics
}

// LogValue is that of the bucket.
func (o *observed) LogValue() slog.Value { return logValue(o.Bucket) }

func (o *observed) Get(ctx context.Context, key string, part Range) (io.ReadCloser, Object, error) {
	start := time.Now()
	body, object, err := o.Bucket.Get(ctx, key, part)
	o.done("get", time.Since(start), err)
	if err != nil {
		return nil, Object{}, err
	}
	return &observedBody{ReadCloser: body, o: o, bytes: o.bytes.WithLabelValues("get")}, object, nil
}

func (o *observed) Put(ctx context.Context, key string, body io.ReadSeeker, cond Condition) (Object, error) {
	start := time.Now()
	object, err := o.Bucket.Put(ctx, key, body, cond)
	o.done("put", time.Since(start), err)
	if err == nil {
		o.bytes.WithLabelValues("put").Add(float64(object.Size))
	}
	return object, err
}

func (o *observed) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		var spent time.Duration
		var failure error
		start := time.Now()
		for object, err := range o.Bucket.List(ctx, prefix, after) {
			spent += time.Since(start)
			failure = err
			more := yield(object, err)
			start = time.Now()
			if !more {
				break
			}
		}
		o.done("list", spent+time.Since(start), failure)
	}
}

func (o *observed) Delete(ctx context.Context, keys ...string) error {
	start := time.Now()
	err := o.Bucket.Delete(ctx, keys...)
	o.done("delete", time.Since(start), err)
	return err
}

func (m *Metrics) done(operation string, spent time.Duration, err error) {
	m.duration.WithLabelValues(operation).Observe(spent.Seconds())
	if err != nil {
		m.failed.WithLabelValues(operation, kind(err)).Inc()
	}
}

func kind(err error) string {
	switch {
	case errors.Is(err, ErrNotFound):
		return "not-found"
	case errors.Is(err, ErrPrecondition):
		return "precondition"
	case errors.Is(err, ErrForbidden):
		return "forbidden"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "other"
}

// observedBody counts the bytes of a body and the error that ends it.
type observedBody struct {
	io.ReadCloser
	o     *observed
	bytes prometheus.Counter
}

func (b *observedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(float64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		b.o.failed.WithLabelValues("get", kind(err)).Inc()
	}
	return n, err
}
