// How a Reader reads arguments, one by one or as an object.

package callform

import (
	"slices"
	"strings"
	"unicode"
)

// readKey takes the name of an argument, and what stands between it and the value.
func (r *Reader) readKey(done bool) bool {
	a := &r.form.Arguments
	forms := append(append([]Value(nil), a.Strings...), a.Other)
	at := -1
	var best Value
	for _, f := range forms {
		assign := f.Assign.String()
		i := strings.Index(r.held, assign)
		if i >= 0 && (at < 0 || i < at || i == at && len(assign) > len(best.Assign.String())) {
			at, best = i, f
		}
	}
	if at < 0 {
		return false
	}
	for _, f := range forms { // one that is longer may stand there
		if rest := r.held[at:]; !done && len(rest) < len(f.Assign.String()) && strings.HasPrefix(f.Assign.String(), rest) {
			return false
		}
	}
	name := r.held[:at]
	assign := best.Assign.String()
	r.held, r.value = r.held[at+len(assign):], best
	r.key = name
	text := assign != a.Other.Assign.String()
	r.other = ""
	if !text {
		text, r.other = r.kinds(r.name, name)
		text = text && len(a.Strings) > 0 && a.Strings[0].Assign.String() == assign
	}
	if a.Nested.Tag != "" {
		text = text && r.other == ""
		r.value.Close = Text{{Literal, a.Nested.Tag + "</" + name + ">"}}
	}
	if r.given {
		r.put(", ")
	} else {
		r.put("{")
	}
	r.given = true
	r.put(string(appendQuoted(nil, name)) + ": ")
	switch {
	case !text:
		r.state, r.value = callOther, a.Other
	case r.other == "":
		r.put(`"`)
		fallthrough
	default:
		r.state = callString
	}
	return true
}

// follows matches what may stand behind an argument.
func (r *Reader) follows(text string, done bool) (best matching) {
	if tag := r.form.Arguments.Nested.Tag; tag != "" && text == tag+"<" && !done { // a slash may follow
		return matchPart
	}
	if len(r.form.Last) == 0 && text == "" {
		best = matchPart
	}
	for _, t := range r.form.Behind() {
		_, _, m := t.match(text)
		best = max(best, m)
	}
	if done && best == matchPart { // it is cut off
		return matchWhole
	}
	return best
}

// string takes a string up to its end.
func (r *Reader) string(done bool) bool {
	end := r.value.Close.String()
	for at := 0; ; at++ {
		i := strings.Index(r.held[at:], end)
		if i < 0 {
			at = len(r.held)
			if !done {
				at -= Overlap(r.held, end)
			}
			r.text(at)
			return false
		}
		at += i
		switch r.follows(r.held[at+len(end):], done) {
		case matchPart:
			r.text(at)
			return false
		case matchWhole:
			r.ended(at, end)
			return true
		}
	}
}

// text gives out the first bytes of a string.
func (r *Reader) text(n int) {
	if r.other == "" {
		r.put(string(appendEscaped(nil, r.held[:n])))
		r.held = r.held[n:]
	}
}

// ended gives out a string that is whole, or what a text that may be none stands for.
func (r *Reader) ended(n int, end string) {
	value := r.held[:n]
	switch {
	case r.other == "":
		r.put(string(appendEscaped(nil, value)) + `"`)
	case LooksOther(value, r.other, r.form.Arguments.Words):
		if json, ok := readLiteral(value, &r.form.Arguments); ok {
			r.put(json)
			break
		}
		fallthrough
	default:
		r.put(string(appendQuoted(nil, value)))
	}
	r.close(r.held[n+len(end):])
}

// LooksOther reports whether the value of an argument that may be a string or not is none.
func LooksOther(value, others string, words Words) bool {
	return strings.ContainsFunc(others, func(begin rune) bool {
		list := words.Of(begin)
		return slices.Contains(list, value) || list == nil && strings.HasPrefix(value, string(begin))
	})
}

// OtherBegins are the characters that true, false, null, numbers, lists, objects and quoted strings begin with.
const OtherBegins = `tfn-0123456789[{"`

// readOther takes a value that is no string up to its end.
func (r *Reader) readOther(done bool) bool {
	if r.form.Arguments.Nested.Tag != "" {
		return r.readElement(done)
	}
	end := r.value.Close.String()
	for _, at := range literalEnds(r.held, r.form.Arguments.Nested.Quote) {
		rest := r.held[at:]
		if !strings.HasPrefix(rest, end) {
			if !done && strings.HasPrefix(end, rest) {
				return false
			}
			continue
		}
		switch r.follows(rest[len(end):], done) {
		case matchPart:
			return false
		case matchWhole:
			json, ok := readLiteral(r.held[:at], &r.form.Arguments)
			if !ok {
				json = string(appendQuoted(nil, r.held[:at]))
			}
			r.put(json)
			r.close(rest[len(end):])
			return true
		}
	}
	return false
}

// close goes on behind a value.
func (r *Reader) close(rest string) {
	n, _, m := r.form.Arguments.Between.match(rest)
	if m == matchWhole && !strings.HasPrefix(rest[n:], "/") { // which ends an element
		r.held, r.state = rest[n:], callKey
		return
	}
	r.put("}")
	r.held, r.state = rest, callNext
}

// next looks for a further call.
func (r *Reader) next(done bool) bool {
	n, id, m := r.form.Next.match(r.held)
	switch {
	case len(r.form.Next) == 0 || m == matchNone:
		r.state = callDone
	case m == matchPart && !done:
		return false
	case m == matchPart:
		r.state = callDone
	default:
		r.index++
		r.begin(r.held, n, id)
		r.taken = ""
	}
	return true
}

// objectScan finds the end of a JSON object in a text that comes in pieces.
type objectScan struct {
	depth          int
	quoted, escape bool // within a string; behind a backslash there
}

func (s *objectScan) add(text string) (n int, ended bool) {
	for n < len(text) && !ended {
		switch b := text[n]; {
		case s.escape:
			s.escape = false
		case s.quoted:
			s.escape, s.quoted = b == '\\', b != '"'
		case b == '"':
			s.quoted = true
		case b == '{' || b == '[':
			s.depth++
		case b == '}' || b == ']':
			s.depth--
			ended = s.depth <= 0
		case s.depth == 0 && !unicode.IsSpace(rune(b)): // no object
			return n, true
		}
		n++
	}
	return n, ended
}
