package filelock

// Bytes of a database file that SQLite locks (os.h: PENDING_BYTE and what
// follows it). A connection in WAL mode holds a Read lock of the shared bytes as
// long as it is open.
const (
	Pending     = 0x40000000 // keeps new readers out
	Reserved    = Pending + 1
	SharedFirst = Pending + 2
	SharedBytes = 510
	// DatabaseBytes is all of them, from Pending on.
	DatabaseBytes = 2 + SharedBytes
)

// Bytes of the -shm that SQLite locks (wal.c: WAL_WRITE_LOCK and so on).
const (
	WALWrite      = 120
	WALCheckpoint = 121
	WALReadMark0  = 123
	// WALBytes is all of them, from WALWrite on, with the one that every
	// connection holds as long as it is open.
	WALBytes = 9
)
