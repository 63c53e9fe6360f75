package capture

import "github.com/tidemark-io/tidemark/ltx"

// Uploaded returns the newest TXID that is uploaded and kept until Confirm; 0:
// none.
func (s *Spool) Uploaded() ltx.TXID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == 0 {
		return 0
	}
	return s.files[s.sent-1].Info.Max
}

// Confirm removes what is uploaded, up to a TXID: nobody else can have written
// it.
func (s *Spool) Confirm(through ltx.TXID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.sent > 0 && s.files[0].Info.Max <= through {
		if err := s.drop(); err != nil {
			return err
		}
	}
	return nil
}
