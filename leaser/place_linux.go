package leaser

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// remoteFilesystems do not promise that a lock of a file is one between all
// machines that see it.
var remoteFilesystems = []uint32{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
	unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC,
}

// placeID names this start of the machine and the directory. Two copies of a
// directory have different ones, on one machine too.
func placeID(dir *os.File) (string, error) {
	var where unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &where); err != nil {
		return "", fmt.Errorf("look at the file system: %w", err)
	}
	if slices.Contains(remoteFilesystems, uint32(where.Type)) {
		return "", nil
	}
	var what unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &what); err != nil {
		return "", fmt.Errorf("look at the directory: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", nil // a system that hides it
	}
	return fmt.Sprintf("%s/%x.%x", strings.TrimSpace(string(boot)), what.Dev, what.Ino), nil
}
