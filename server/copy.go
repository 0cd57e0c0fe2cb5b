package server

import "errors"

var errCopyOver = errors.New("COPY data is no longer taken")

// pump passes the client's COPY data on until its end, or until Postgres has
// had enough of it.
func (s *session) pump() error {
	s.setPumping(true)
	defer s.setPumping(false)
	for s.isCopyingIn() {
		typ, size, err := s.in.header()
		if errors.Is(err, errCopyOver) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.passCopy(typ, size); err != nil {
			return err
		}
	}
	return s.up.Flush()
}

func (s *session) setPumping(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pumping = on
}
