package grove

import (
	"strings"

	"github.com/grovellm/grove/internal/callform"
)

// stopper passes text on until a stop string is complete, and holds back what could still become
// one. It looks at one byte after another, so where it stops does not depend on how the text was
// cut into pieces: tokens accepted together stop where tokens decoded one by one do.
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
		keep = max(keep, callform.Overlap(s.held, stop))
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

// reasoned parts an output that may begin with reasoning: stop strings count behind it. The zero
// value is for outputs without reasoning.
type reasoned struct {
	marks callform.Marks
	opens string // a call, which ends reasoning as well
	state reasonedState
	held  string
}

type reasonedState int

const (
	noReasoning     reasonedState = iota // or it is over
	mayReason                            // the output has no more than white space and a part of the mark so far
	isReasoning                          // its end has not come
	beforeText                           // behind its end, white space that is no part of the answer
	reasoningSpaces = " \n"
)

// push adds text, and returns what is reasoning, with its marks and the white space behind it, and
// what follows.
func (r *reasoned) push(text string) (thought, rest string) {
	if r.state == noReasoning {
		return "", text
	}
	r.held += text
	if r.state == mayReason {
		switch begun := strings.TrimLeft(r.held, reasoningSpaces); {
		case strings.HasPrefix(begun, r.marks.Begin):
			r.state = isReasoning
		case strings.HasPrefix(r.marks.Begin, begun):
			return "", ""
		default:
			r.state = noReasoning
		}
	}
	if r.state == isReasoning {
		before, mark, _, ended := r.marks.Cut(r.held, r.opens)
		thought = r.cut(len(before) + len(mark))
		if !ended {
			return thought, ""
		}
		r.state = beforeText
	}
	if r.state == beforeText {
		after := strings.TrimLeft(r.held, reasoningSpaces)
		thought += r.cut(len(r.held) - len(after))
		if after == "" {
			return thought, ""
		}
		r.state = noReasoning
	}
	return thought, r.cut(len(r.held))
}

// flush returns the text held back, when no more will come.
func (r *reasoned) flush() (thought, rest string) {
	held := r.cut(len(r.held))
	if r.state == isReasoning {
		return held, ""
	}
	return "", held
}

// cut takes the first n bytes that are held.
func (r *reasoned) cut(n int) (text string) {
	text, r.held = r.held[:n], r.held[n:]
	return text
}
