package chat

import (
	"fmt"
	"strings"
	"unicode"
)

// prepare rewrites a template so that the engine has nothing left to guess:
//
//   - White space around tags is settled here by Jinja's rules, with trim_blocks and lstrip_blocks as
//     Hugging Face sets them, and all text becomes {{ "text" }}: the engine's own trimming takes too
//     much where two tags stand side by side.
//   - What operators, filters and methods read is measured (expr.go, meter.go), and so are loops.
//   - set a, b = x, y, which the engine does not know, becomes two of them.
//   - A filter block becomes a set block and the filter, for the engine drops a filter's arguments.
//   - Escapes in strings that the engine does not know become the characters they stand for.
func prepare(source string) (text string, called []string, err error) {
	if len(source) > maxSource {
		return "", nil, fmt.Errorf("%d bytes long, more than the %d that grove takes", len(source), maxSource)
	}
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	source = strings.TrimSuffix(source, "\n") // keep_trailing_newline is off
	p := preparer{src: source, lineStart: true}
	for p.pos < len(source) {
		if err := p.next(); err != nil {
			return "", nil, fmt.Errorf("line %d: %w", 1+strings.Count(source[:p.pos], "\n"), err)
		}
	}
	return p.out.String(), p.called, nil
}

type preparer struct {
	src       string
	pos       int
	lineStart bool     // what came before ended a line
	blocks    []string // that are open: the words that end them
	filters   []string // of the filter blocks that are open
	called    []string // macros of call blocks
	out       strings.Builder
}

// next handles the text up to the next tag, and the tag.
func (p *preparer) next() error {
	t, ok := nextTag(p.src, p.pos)
	if !ok {
		p.text(p.src[p.pos:], "")
		p.pos = len(p.src)
		return nil
	}
	p.leading(p.src[p.pos:t.start], t)
	p.pos = t.start
	if t.end < 0 {
		return fmt.Errorf("%q is not closed", p.src[t.start:t.start+2])
	}
	if err := p.tag(t); err != nil {
		return err
	}
	if word := t.word(); word == "raw" {
		return p.raw(t)
	}
	p.pos = t.end + p.trailing(t)
	p.lines(p.src[t.end:p.pos])
	p.lineStart = p.src[p.pos-1] == '\n'
	return nil
}

// leading writes the text before a tag: without white space before a minus, and without the
// indentation of a block or comment that begins its line.
func (p *preparer) leading(text string, t tag) {
	kept := text
	switch line := strings.LastIndexByte(text, '\n') + 1; {
	case t.before == '-':
		kept = strings.TrimRightFunc(text, unicode.IsSpace)
	case t.before != '+' && t.kind != '{' && (line > 0 || p.lineStart) && strings.Trim(text[line:], " \t") == "":
		kept = text[:line]
	}
	p.text(kept, text[len(kept):])
}

// trailing is how much white space after a tag goes: all of it after a minus, else one line end after a
// block or comment.
func (p *preparer) trailing(t tag) int {
	rest := p.src[t.end:]
	switch {
	case t.after == '-':
		return len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	case t.after != '+' && t.kind != '{' && strings.HasPrefix(rest, "\n"):
		return 1
	}
	return 0
}

// text writes text as an expression, and the line ends of what was cut off as a comment, which keeps
// the engine's line numbers right.
func (p *preparer) text(kept, cut string) {
	if kept != "" {
		p.out.WriteString("{{ " + nameOutput + `("` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(kept) + `") }}`)
	}
	p.lines(cut)
}

func (p *preparer) lines(cut string) {
	if n := strings.Count(cut, "\n"); n > 0 {
		p.out.WriteString("{#" + strings.Repeat("\n", n) + "#}")
	}
}

// raw copies what stands between raw and endraw. Unlike other blocks, raw keeps the line end after it.
func (p *preparer) raw(t tag) error {
	p.pos = t.end
	if t.after == '-' {
		p.pos += p.trailing(t)
	}
	for at := p.pos; ; {
		end, ok := nextTag(p.src, at)
		if !ok {
			return fmt.Errorf("raw without endraw")
		}
		if end.word() == "endraw" && end.end > 0 {
			p.lineStart = false
			p.leading(p.src[p.pos:end.start], end)
			p.pos = end.end + p.trailing(end)
			p.lineStart = p.src[p.pos-1] == '\n'
			return nil
		}
		at = end.start + 2
	}
}

// tag writes a tag without its trim marks.
func (p *preparer) tag(t tag) error {
	if t.kind == '#' || t.word() == "raw" {
		p.lines(t.body)
		return nil
	}
	if t.kind != '{' {
		return p.block(t.word(), t.body)
	}
	tokens, err := lex(rewriteStrings(t.body))
	if err != nil {
		return err
	}
	value, err := (&rewriter{tokens: tokens}).whole(nameOutput, len(t.body))
	p.out.WriteString("{{ " + value + " }}")
	return err
}

// A tag is one {{ }}, {% %} or {# #} of a template.
type tag struct {
	kind          byte // '{', '%' or '#'
	start, end    int  // end is −1 where it is not closed
	before, after byte // the trim marks, - or +, 0 for none
	body          string
}

// word is the keyword of a block.
func (t tag) word() string {
	if t.kind != '%' {
		return ""
	}
	body := strings.TrimSpace(t.body)
	for i := range len(body) {
		if !identByte(body[i]) {
			return body[:i]
		}
	}
	return body
}

// nextTag finds the first tag at or after i. Delimiters within quoted strings do not count.
func nextTag(s string, i int) (t tag, ok bool) {
	for ; ; i++ {
		k := strings.IndexByte(s[i:], '{')
		if k < 0 || i+k+1 >= len(s) {
			return t, false
		}
		i += k
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			t = tag{kind: c, start: i, end: -1}
			break
		}
	}
	closer := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[t.kind]
	from := i + 2
	if from < len(s) && (s[from] == '-' || s[from] == '+') {
		t.before = s[from]
		from++
	}
	braces := 0 // of dict literals, whose end is no end of the tag
	for k := from; k < len(s); k++ {
		switch c := s[k]; {
		case t.kind != '#' && (c == '\'' || c == '"'):
			k = quoteEnd(s, k)
		case t.kind == '{' && c == '{':
			braces++
		case t.kind == '{' && c == '}' && braces > 0:
			braces--
		case strings.HasPrefix(s[k:], closer):
			to := k
			if to > from && (s[to-1] == '-' || s[to-1] == '+' && t.kind != '{') {
				to--
				t.after = s[to]
			}
			t.end, t.body = k+2, s[from:to]
			return t, true
		}
	}
	return t, true
}

// quoteEnd returns the place of the quote that closes the one at k, or the end of s.
func quoteEnd(s string, k int) int {
	for i := k + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[k]:
			return i
		}
	}
	return len(s)
}
