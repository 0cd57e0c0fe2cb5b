package server

import (
	"bytes"
	"slices"
)

// settings is what the client knows of those that Postgres reports.
//
// Postgres reports one in front of ReadyForQuery, if it differs from what it
// last reported. Where a ReadyForQuery is one that the client does not see, what
// was changed may be put back before the next one: by a handler, which sets some
// for its own transactions, or by the client's own ROLLBACK. Neither is for the
// client to see: there are drivers that end a session over its DateStyle.
type settings struct {
	// told is the contents of the last ParameterStatus of each setting that the
	// client has got, one behind the other: every session has these.
	told []byte
	// untold is the last ParameterStatus of each setting that was kept back.
	untold [][]byte
}

// keep takes a ParameterStatus, which replaces an earlier one of the setting.
func (s *settings) keep(message []byte) {
	s.discard(settingName(message[headerSize:]))
	s.untold = append(s.untold, bytes.Clone(message))
}

// discard drops what was kept of a setting, of all if the name is empty.
func (s *settings) discard(name []byte) {
	s.untold = slices.DeleteFunc(s.untold, func(message []byte) bool { return bytes.HasPrefix(message[headerSize:], name) })
}

// tell returns what was kept and is news to the client, which gets it now.
func (s *settings) tell() []byte {
	var news []byte
	for _, message := range s.untold {
		content := message[headerSize:]
		if from, to := s.find(settingName(content)); !bytes.Equal(s.told[from:to], content) {
			s.told = append(slices.Delete(s.told, from, to), content...)
			news = append(news, message...)
		}
	}
	s.untold = nil
	return news
}

// forget drops what is known of a setting whose ParameterStatus is passed on
// unread. If its name is not known either, that is everything.
func (s *settings) forget(name []byte) {
	s.discard(name)
	if len(name) == 0 {
		s.told = nil
		return
	}
	from, to := s.find(name)
	s.told = slices.Delete(s.told, from, to)
}

// find returns where in told a setting is; from and to are the same if the
// client has not been told of it.
func (s *settings) find(name []byte) (from, to int) {
	for rest := s.told; len(rest) > 0; {
		b := body{rest: rest}
		b.skipText()
		b.skipText()
		if bytes.HasPrefix(rest, name) {
			return len(s.told) - len(rest), len(s.told) - len(b.rest)
		}
		rest = b.rest
	}
	return 0, 0
}

// settingName is the name in the content of a ParameterStatus, with the byte
// that ends it.
func settingName(content []byte) []byte {
	return content[:bytes.IndexByte(content, 0)+1]
}

// judgeSetting keeps a ParameterStatus for the next ReadyForQuery that the client
// sees, or returns what the client gets now; the caller holds out and mu.
func (s *session) judgeSetting(message []byte) []byte {
	content := message[headerSize:]
	if bytes.Count(content, []byte{0}) != 2 || content[len(content)-1] != 0 {
		// Not all of it, or not a name and a value.
		s.settings.forget(settingName(content))
		return message
	}
	s.settings.keep(message)
	if s.nextReadyIsHidden() {
		return nil
	}
	return s.inOrder(s.settings.tell())
}

// nextReadyIsHidden reports that the client does not get the ReadyForQuery which
// comes next; the caller holds mu.
func (s *session) nextReadyIsHidden() bool {
	if s.recounting != nil {
		return true // or gets it later
	}
	d, owed := s.ledger.nextReady()
	if !owed {
		return s.inScript
	}
	return d.note != nil && d.note.sink != nil
}
