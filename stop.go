package grove

import (
	"strings"

	"github.com/grovellm/grove/internal/callform"
)

// stopper passes text on until a stop string is complete, and holds back text that could still
// become one. It looks at one byte after another, so where it stops does not depend on how the text
// was cut into pieces: tokens accepted together stop where tokens decoded one by one do.
type stopper struct {
	stops []string
	after int // bytes of the text within which stop strings do not count
	held  string
	found string // the stop string that ended the text
}

// push adds text and returns the text that is certain to come before any stop string. given is the number of bytes
// that are out already. stopped reports whether a stop string is complete; if several end at the same byte, found is
// the longest.
func (s *stopper) push(text string, given int) (out string, stopped bool) {
	if len(s.stops) == 0 {
		return text, false
	}
	from := max(len(s.held), s.after-given)
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

// reasoned separates the reasoning at the beginning of an output from the rest: stop strings count
// only after it, and in preambles. The zero value is for outputs without reasoning.
type reasoned struct {
	marks    callform.Marks
	opens    string         // begins a call, which also ends reasoning
	preamble callform.Marks // around text for the user between reasoning; empty if there is none
	state    reasonedState
	held     string
}

type reasonedState int

const (
	noReasoning     reasonedState = iota // reasoning is absent, or over
	mayReason                            // so far there are only white space and part of the mark
	isReasoning                          // reasoning has not ended
	inPreamble                           // more of it may follow
	beforeText                           // after its end, in white space that is not part of the answer
	reasoningSpaces = " \n"
)

// push adds text, and returns the reasoning, with its marks and the white space after it, and the
// text that follows. again says that this was a preamble, behind which there may be more of both.
func (r *reasoned) push(text string) (thought, rest string, again bool) {
	if r.state == noReasoning {
		return "", text, false
	}
	r.held += text
	if r.state == mayReason {
		switch begun := strings.TrimLeft(r.held, reasoningSpaces); {
		case strings.HasPrefix(begun, r.marks.Begin), strings.HasPrefix(begun, r.marks.End):
			r.state = isReasoning
		case strings.HasPrefix(r.marks.Begin, begun), strings.HasPrefix(r.marks.End, begun):
			return "", "", false
		default:
			r.state = noReasoning
		}
	}
	if r.state == isReasoning {
		before, mark, _, ended := r.marks.Cut(r.held, r.opens)
		next := beforeText
		said, begin, _, begins := callform.Marks{End: r.preamble.Begin}.Cut(r.held, "")
		if r.preamble.Begin != "" && len(said) < len(before) {
			before, mark = said, begin
			ended = begins
			next = inPreamble
		}
		thought = r.cut(len(before) + len(mark))
		if !ended {
			return thought, "", false
		}
		r.state = next
	}
	if r.state == inPreamble {
		before, _, _, ended := callform.Marks{End: r.preamble.End}.Cut(r.held, "")
		if ended { // the mark is reasoning
			r.state = isReasoning
		}
		return thought, r.cut(len(before)), ended
	}
	if r.state == beforeText {
		after := strings.TrimLeft(r.held, reasoningSpaces)
		thought += r.cut(len(r.held) - len(after))
		if after == "" {
			return thought, "", false
		}
		r.state = noReasoning
	}
	return thought, r.cut(len(r.held)), false
}

// flush returns the text held back, when no more will come.
func (r *reasoned) flush() (thought, rest string) {
	held := r.cut(len(r.held))
	if r.state == isReasoning {
		return held, ""
	}
	return "", held
}

// cut takes the first n bytes of the held text.
func (r *reasoned) cut(n int) (text string) {
	text, r.held = r.held[:n], r.held[n:]
	return text
}
