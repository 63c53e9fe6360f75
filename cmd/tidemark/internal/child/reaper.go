package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// Reaper waits for every process that ends below this one, orphans too, and
// tells the Commands that share it how theirs did: the first process of a
// container, in which several Commands run at a time, needs one. Nobody else may
// wait for children while it runs.
type Reaper struct {
	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus // by process
}

// NewReaper returns one that does not run yet.
func NewReaper() *Reaper { return &Reaper{waiting: map[int]chan syscall.WaitStatus{}} }

// Run reaps until ctx ends.
func (r *Reaper) Run(ctx context.Context) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		r.reapAll()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended:
		}
	}
}

func (r *Reaper) reapAll() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		r.mu.Lock()
		if done := r.waiting[pid]; done != nil && (status.Exited() || status.Signaled()) {
			delete(r.waiting, pid)
			done <- status
		}
		r.mu.Unlock()
	}
}

// start starts a process and returns where its end is told, which cannot come
// before.
func (r *Reaper) start(cmd *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan syscall.WaitStatus, 1)
	r.waiting[cmd.Process.Pid] = done
	return done, nil
}
