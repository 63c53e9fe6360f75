package ltx

import "github.com/pierrec/lz4/v4"

// packer compresses pages, each by itself, as LZ4 blocks.
type packer struct{ c *lz4.Compressor }

// pack compresses page to dst, which must hold lz4.CompressBlockBound bytes,
// and returns the size.
func (p *packer) pack(dst, page []byte) int {
	if p.c == nil {
		p.c = new(lz4.Compressor)
	}
	n, err := p.c.CompressBlock(page, dst)
	if err != nil {
		panic(err)
	}
	return n
}
