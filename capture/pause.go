package capture

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pause is a time in which nobody writes to the file.
type pause struct {
	glance
	dated bool // its end shows in the modification time
}

// pause returns one that its writer begins: one that is not over when the
// reading begins is the longest there is. A fast writer is looked at without
// rest, for the beginning not to be missed.
func (db *database) pause() (p pause, err error) {
	for start := time.Now(); ; {
		now, err := tick()
		if err == nil {
			p.glance, err = db.glance()
		}
		p.dated = err == nil && db.dated(p.stamp, now)
		waited := time.Since(start)
		if !errors.Is(err, errExclusive) || waited > longestRest {
			return p, err
		}
		if waited > pauseSpin {
			time.Sleep(pauseTick)
		}
	}
}

const (
	// pauseSpin is how long a writer is looked at without rest, pauseTick how
	// often after that.
	pauseSpin = 2 * time.Millisecond
	pauseTick = time.Millisecond
)

// tick returns the time that the kernel gives to what is written now: that of
// its last tick, some milliseconds ago at most (clock_getres(2)).
func tick() (time.Time, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return time.Time{}, os.NewSyscallError("clock_gettime", err)
	}
	return time.Unix(now.Unix()), nil
}

// keepsTicks tells whether the file system of an open file takes the time of a
// write from this machine's kernel.
func keepsTicks(f *os.File) bool {
	var where unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &where); err != nil {
		return false
	}
	switch uint32(where.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}

// dated tells whether every write to the file since the tick shows in its
// modification time: the last one before was in an earlier tick, and the time
// is kept in full. ext4 with small inodes keeps seconds only, which end in
// zeros.
func (db *database) dated(last stamp, tick time.Time) bool {
	return db.ticks && last.mtime.Nsec != 0 && tick.After(time.Unix(last.mtime.Unix()))
}
