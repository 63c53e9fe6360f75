package main

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/internal/web"
	"github.com/tidemark-io/tidemark/leaser"
)

// troubles are what goes wrong with a node beside its databases and its lease,
// by the key of the configuration that it is about.
type troubles struct {
	mu  sync.Mutex
	all []web.Problem
}

// note keeps the last error about a key; nil: there is none. It tells whether
// there was none before, so that it is logged once.
func (t *troubles) note(key string, err error) (fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.all, func(p web.Problem) bool { return p.Name == key })
	switch {
	case err == nil && i >= 0:
		t.all = slices.Delete(t.all, i, i+1)
	case err == nil:
	case i >= 0:
		t.all[i].Error = err.Error()
	default:
		t.all = append(t.all, web.Problem{Name: key, Error: err.Error(), Since: time.Now()})
		return true
	}
	return false
}

// now are the troubles that matter: a promotion that failed does not while
// another node is the primary.
func (t *troubles) now(s leaser.Status) []web.Problem {
	t.mu.Lock()
	defer t.mu.Unlock()
	served := s.Generation == 0 && s.Holder.State == leaser.Held
	return slices.DeleteFunc(slices.Clone(t.all), func(p web.Problem) bool { return served && p.Name == keyOnPromote })
}

// text is all of them in one line.
func (t *troubles) text(s leaser.Status) string {
	var all []string
	for _, p := range t.now(s) {
		all = append(all, p.Error)
	}
	return strings.Join(all, "; ")
}
