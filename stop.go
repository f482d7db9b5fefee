package grove

import "strings"

// stopper passes text on until a stop string is complete, and holds back what could still become
// one. It looks at one byte after another, so where it stops does not depend on how the text was cut
// into pieces: tokens accepted together stop where tokens decoded one by one do.
type stopper struct {
	stops []string
	held  string
	found string // the stop string that ended the text
}

// push adds text and returns what is certain to come before any stop string. stopped says that one
// is complete; of several that end at the same byte the longest counts.
func (s *stopper) push(text string) (out string, stopped bool) {
	if len(s.stops) == 0 {
		return text, false
	}
	from := len(s.held)
	s.held += text
	for end := from + 1; end <= len(s.held); end++ {
		for _, stop := range s.stops {
			if len(stop) > len(s.found) && strings.HasSuffix(s.held[:end], stop) {
				s.found = stop
			}
		}
		if s.found != "" {
			out, s.held = s.held[:end-len(s.found)], ""
			return out, true
		}
	}
	keep := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > keep; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				keep = n
			}
		}
	}
	out, s.held = s.held[:len(s.held)-keep], s.held[len(s.held)-keep:]
	return out, false
}

// flush returns the text held back, when no more will come.
func (s *stopper) flush() string {
	out := s.held
	s.held = ""
	return out
}
