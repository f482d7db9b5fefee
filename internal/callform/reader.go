package callform

import "strings"

// Delta is a part of a call. Name and ID come with its first part; ID is empty where the text has
// none before the arguments.
type Delta struct {
	Index     int
	Name, ID  string
	Arguments string // JSON
}

// Kinds says of an argument of a tool whether it may be a string, and with which characters of OtherBegins its
// other values begin. Forms that write strings without quotes need it. Members and items of arguments have the names,
// and numbers, on the way to them, with Within between these.
type Kinds func(tool, argument string) (text bool, others string)

// Within precedes the name of a member and the number of an item.
const Within = "\x00"

// Reader parts the text of a turn, as it comes, into reasoning, content and calls.
type Reader struct {
	ways  []*Form // as the first call may begin
	form  *Form   // of the calls
	kinds Kinds
	state callState
	held  string
	taken string // of a call, as long as it may turn out to be text

	index int
	name  string
	key   string // of the argument
	id    string
	scan  objectScan
	given bool // the call has an argument
	said  bool // there was a preamble
	value Value
	other string // the first characters of other values, where the value may be a string too: its whole text decides
	out   []Delta
}

type callState int

const (
	callStart callState = iota
	callThought
	callPreamble
	callContent
	callName
	callObject
	callKey
	callString
	callOther
	callNext
	callDone
)

// NewReader makes a reader of a turn. A nil kinds takes values for what they look like.
func (f *Form) NewReader(kinds Kinds) *Reader {
	if kinds == nil {
		kinds = func(string, string) (bool, string) { return true, OtherBegins }
	}
	return &Reader{ways: f.Ways(), form: f, kinds: kinds}
}

// Add takes a piece of the text. done says that it is the last.
func (r *Reader) Add(text string, done bool) (reasoning, content string, calls []Delta) {
	r.held += text
	r.out = nil
	var thought, b strings.Builder
	for r.step(&thought, &b, done) {
	}
	return thought.String(), b.String(), r.out
}

// step takes what it can of the text held. It returns true if a further step may take more.
func (r *Reader) step(thought, content *strings.Builder, done bool) bool {
	switch r.state {
	case callStart:
		return r.start(content, done)
	case callThought:
		return r.thought(thought, done)
	case callPreamble:
		return r.thought(content, done)
	case callContent:
		return r.content(content, done)
	case callName:
		return r.readName(content, done)
	case callObject:
		n, ended := r.scan.add(r.held)
		r.put(r.held[:n])
		r.held = r.held[n:]
		if ended {
			r.state = callNext
		}
		return ended
	case callKey:
		return r.readKey(done)
	case callString:
		return r.string(done)
	case callOther:
		return r.readOther(done)
	case callNext:
		return r.next(done)
	}
	r.held = ""
	return false
}

// Open reports whether a call that r reads has begun and is not whole yet.
func Open(r *Reader) bool { return r.state >= callName && r.state < callNext }

// Held is the end of the text that r has made nothing of yet.
func Held(r *Reader) string { return r.held }

const space = " \t\r\n"

// start finds out whether the turn begins with a call.
func (r *Reader) start(content *strings.Builder, done bool) bool {
	text := strings.TrimLeft(r.held, space)
	if text == "" && !done {
		return false
	}
	unclear := func(begin Text, m matching) bool { // at the end of the text what is no more than a beginning is none
		mark := begin.Mark()
		return m == matchPart && (!done || mark != "" && strings.HasPrefix(text, mark))
	}
	for state, begin := range map[callState]Text{callContent: r.form.Text, callThought: r.form.Thought.Assign,
		callPreamble: r.form.Preamble.Assign} {
		n, _, m := begin.trimmed().match(text)
		if unclear(begin, m) {
			return false
		}
		if m == matchWhole && len(begin) > 0 {
			r.held, r.state = text[n:], state
			if r.said && state != callThought {
				content.WriteString("\n\n")
			}
			r.said = r.said || state == callPreamble
			return true
		}
	}
	for _, way := range r.ways {
		n, id, m := way.First.trimmed().match(text)
		switch {
		case unclear(way.First, m):
			return false
		case m == matchWhole && text != "":
			r.form = way
			r.begin(text, n, id)
			return true
		}
	}
	r.state = callContent
	return true
}

// begin goes on with the name of a call behind n bytes of a text.
func (r *Reader) begin(text string, n int, id string) {
	r.taken = text[:n]
	r.held = text[n:]
	r.id = id
	r.state = callName
}

// thought takes reasoning, or a preamble, up to its end.
func (r *Reader) thought(out *strings.Builder, done bool) bool {
	end := r.form.Thought.Close
	text, rest, found := strings.Cut(r.held, end.String())
	if !found {
		keep := len(r.held)
		if n := Overlap(r.held, end.String()); !done || n >= len(end.Mark()) {
			keep -= n
		}
		text, rest = r.held[:keep], r.held[keep:]
	} else {
		r.state = callStart
	}
	out.WriteString(text)
	r.held = rest
	return found
}

// content takes text up to the mark of calls. White space before calls is left out, so it is held back.
func (r *Reader) content(out *strings.Builder, done bool) bool {
	if r.form.After.Mark() == "" {
		out.WriteString(r.held)
		r.held = ""
		return false
	}
	at, keep := len(r.held), len(r.held)
	for _, way := range r.ways {
		m := way.After.Mark()
		if i := strings.Index(r.held, m); i >= 0 && m != "" {
			at = min(at, i)
		}
		if !done {
			keep = min(keep, len(r.held)-Overlap(r.held, m))
		}
	}
	if at == len(r.held) {
		if !done {
			keep = len(strings.TrimRight(r.held[:keep], space))
		}
		out.WriteString(r.held[:keep])
		r.held = r.held[keep:]
		return false
	}
	before, best := len(strings.TrimRight(r.held[:at], space)), matchNone
	for _, way := range r.ways { // several may have the mark
		n, id, m := way.After.trimmed().match(r.held[at:])
		best = max(best, m)
		if m == matchWhole {
			out.WriteString(r.held[:before])
			r.form = way
			r.begin(r.held[before:], at-before+n, id)
			return true
		}
	}
	if best == matchNone { // what no call follows is text; at the end of the text the call was cut short, and is none
		before = at + 1
	}
	out.WriteString(r.held[:before])
	r.held = r.held[before:]
	return best == matchNone
}

// Overlap is how many bytes at the end of a text may begin a word.
func Overlap(text, word string) int {
	for n := min(len(word)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, word[:n]) {
			return n
		}
	}
	return 0
}

// readName takes the name of a call, and what stands between it and the arguments.
func (r *Reader) readName(content *strings.Builder, done bool) bool {
	n := 0
	for n < len(r.held) && inName(r.held[n]) {
		n++
	}
	if n == len(r.held) {
		return false // where the text ends here, the call was cut short, and is none
	}
	a := &r.form.Arguments
	rest := r.held[n:]
	open, id, m := r.withoutArguments(rest, done)
	empty := m == matchWhole
	if m == matchNone {
		open, id, m = a.Open.match(rest)
	}
	object := strings.TrimLeft(rest[min(open, len(rest)):], space)
	if m == matchPart || m == matchWhole && a.Object && object == "" && !done {
		return false
	}
	if n == 0 || m != matchWhole || a.Object && object != "" && object[0] != '{' {
		r.noCall(content)
		return true
	}
	if id != "" {
		r.id = id
	}
	r.name = r.held[:n]
	r.out = append(r.out, Delta{Index: r.index, Name: r.name, ID: r.id})
	r.held = rest[open:]
	r.given = false
	r.scan = objectScan{}
	switch {
	case a.Object:
		r.state = callObject
	case empty:
		r.put("{}")
		r.state = callNext
	default:
		r.state = callKey
	}
	return true
}

// withoutArguments matches what stands behind the name of a call that has no arguments. What begins
// arguments may begin alike, so that what stands behind counts as well.
func (r *Reader) withoutArguments(text string, done bool) (n int, id string, m matching) {
	a := &r.form.Arguments
	if a.Object {
		return 0, "", matchNone
	}
	n, id, m = a.None.match(text)
	if m != matchWhole {
		return n, id, m
	}
	m = matchNone
	if len(r.form.Last) == 0 && text[n:] == "" {
		m = matchPart
	}
	for _, t := range []Text{r.form.Next, r.form.Last} {
		if len(t) > 0 {
			_, _, behind := t.match(text[n:])
			m = max(m, behind)
		}
	}
	if done && m == matchPart {
		m = matchWhole
	}
	return n, id, m
}

// noCall takes what looked like the beginning of the first call for text.
func (r *Reader) noCall(content *strings.Builder) {
	r.state = callDone
	if r.index == 0 {
		n := min(len(r.taken)-len(strings.TrimLeft(r.taken, space))+1, len(r.taken)) // a mark may begin behind
		content.WriteString(r.taken[:n])
		r.held, r.state = r.taken[n:]+r.held, callContent
	}
}

// put adds to the arguments of the call.
func (r *Reader) put(text string) {
	if text == "" {
		return
	}
	if last := len(r.out) - 1; last >= 0 && r.out[last].Index == r.index {
		r.out[last].Arguments += text
		return
	}
	r.out = append(r.out, Delta{Index: r.index, Arguments: text})
}
