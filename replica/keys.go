package replica

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/ltx"
)

// Layout is the way keys are spelled. Both spellings are those of Litestream
// v0.5, so that each program finds the files of the other.
type Layout int

const (
	// LayoutDir is ltx/<level>/<min>-<max>.ltx, used in directories.
	LayoutDir Layout = iota
	// LayoutObject is <level as %04x>/<min>-<max>.ltx, used in object stores.
	LayoutObject
)

// levels is the number of levels: 0 to ltx.LevelSnapshot.
const levels = ltx.LevelSnapshot + 1

const suffix = ".ltx"

// Key returns the key of a file, relative to the replica's prefix.
func (l Layout) Key(level int, minTXID, maxTXID ltx.TXID) string {
	return l.levelPrefix(level) + minTXID.String() + "-" + maxTXID.String() + suffix
}

// ParseKey tells which file a key names. It accepts exactly the keys that Key
// makes; any other name in the bucket is not ours.
func (l Layout) ParseKey(key string) (ltx.FileInfo, bool) {
	cut := strings.LastIndexByte(key, '/') + 1
	name, ok := strings.CutSuffix(key[cut:], suffix)
	if !ok || len(name) != 33 || name[16] != '-' {
		return ltx.FileInfo{}, false
	}
	low, lowErr := strconv.ParseUint(name[:16], 16, 64)
	high, highErr := strconv.ParseUint(name[17:], 16, 64)
	if lowErr != nil || highErr != nil || low == 0 || low > high {
		return ltx.FileInfo{}, false
	}
	for level := range levels {
		f := ltx.FileInfo{Level: level, Min: ltx.TXID(low), Max: ltx.TXID(high)}
		if key == l.Key(level, f.Min, f.Max) {
			return f, true
		}
	}
	return ltx.FileInfo{}, false
}

// prefix is what all keys of all levels begin with, and little else does: the
// bucket may hold a lake's data beside the replica.
func (l Layout) prefix() string {
	if l == LayoutObject {
		return "000"
	}
	return "ltx/"
}

func (l Layout) levelPrefix(level int) string {
	if l == LayoutObject {
		return fmt.Sprintf("%04x/", level)
	}
	return "ltx/" + strconv.Itoa(level) + "/"
}
