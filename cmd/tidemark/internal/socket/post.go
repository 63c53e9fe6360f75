package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrUnknown is wrapped when the process behind a socket does not know what it
// was asked about.
var ErrUnknown = errors.New("not known there")

// Post has the process behind the socket do something, and calls each with
// every JSON value of its answer as it comes. It lasts until ctx ends if it must.
func Post(ctx context.Context, path, resource string, each func(json.RawMessage) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://tidemark"+resource, nil)
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	reply, err := (&http.Client{Transport: transport(path)}).Do(request)
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, errors.Unwrap(err))
	}
	defer reply.Body.Close()
	switch reply.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return fmt.Errorf("socket %s: %w", path, ErrUnknown)
	default:
		return fmt.Errorf("socket %s: %s answered %s", path, request.URL.Path, reply.Status)
	}
	for values := json.NewDecoder(io.LimitReader(reply.Body, maxAnswer)); ; {
		var value json.RawMessage
		switch err := values.Decode(&value); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("socket %s: the answer ended early: %w", path, err)
		}
		if err := each(value); err != nil {
			return err
		}
	}
}
