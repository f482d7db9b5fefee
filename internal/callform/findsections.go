// What begins calls, parts them and ends them.

package callform

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// sections finds what begins, parts and ends calls. one is the text of a turn of one call around
// its name and arguments.
func (p *probe) sections(f *formOf, object bool, head, tail string) error {
	prompt, err := p.render("")
	if err != nil {
		return err
	}
	said, err := p.render(quoteJSON(probeContent))
	if err != nil {
		return err
	}
	intro, outro, ok := strings.Cut(said, probeContent)
	if !ok {
		return fmt.Errorf("%w: it leaves the assistant's text out", errNotRendered)
	}
	start := max(p.t.sharedLength(head, prompt), p.t.sharedLength(head, intro))
	f.first = withoutThinking(head[start:])
	f.text = p.t.opening(intro, prompt)
	f.after = f.first
	ends := turnEnds{t: p.t, outro: outro, marks: markup.FindAllString(intro, -1)}
	if err := p.behindText(f, prompt, ends); err != nil {
		return err
	}
	if err := p.several(f, object, tail, ends); err != nil {
		return err
	}
	f.last = ends.cut(tail)
	return nil
}

// behindText finds how a call begins behind text.
func (p *probe) behindText(f *formOf, prompt string, ends turnEnds) error {
	both, err := p.render(quoteJSON(probeContent), plainCall(0, 1))
	if errors.Is(err, errNotRendered) {
		return nil
	}
	f.alone = !strings.Contains(both, probeNames[0])
	before, behind, _ := strings.Cut(both, probeContent)
	after, _, ok := strings.Cut(behind, probeNames[0])
	if !ok || strings.TrimSpace(after) == strings.TrimSpace(f.first) {
		return nil
	}
	begin := p.t.opening(before, prompt)
	if end, ok := strings.CutSuffix(after, f.first); ok && begin != "" && begin != f.text {
		f.thought = [2]string{begin, end}
	} else if len(ends.cut(after)) == len(strings.TrimRight(after, space)) { // in the same turn
		f.after = after
	}
	return nil
}

// opening is what of the text before the assistant's the prompt for it leaves to the model, reasoning apart.
func (t *Template) opening(intro, prompt string) string {
	text := strings.TrimSpace(withoutThinking(intro[t.sharedLength(intro, prompt):]))
	if text == "" || strings.HasSuffix(strings.TrimSpace(prompt), text) { // a prompt may have more before it
		return ""
	}
	return intro[strings.LastIndex(intro, text):] // with the line end that belongs to it
}

// several finds what stands between calls, and the numbers of calls.
func (p *probe) several(f *formOf, object bool, tail string, ends turnEnds) error {
	text, err := p.render(p.content, plainCall(0, 1), plainCall(1, 1), plainCall(2, 1))
	if errors.Is(err, errNotRendered) {
		return nil // one call at most
	}
	var opens, nexts [3]string
	for i, name := range probeNames {
		var ok bool
		nexts[i], text, ok = strings.Cut(text, name)
		if !ok {
			if i == 1 {
				return nil
			}
			return errors.New("the third call is written in another way")
		}
		if object {
			opens[i], text, ok = cutObject(text, i)
		} else {
			var assign string
			opens[i], assign, text, ok = cutSingle(text, probeKeys[i], probeValues[i])
			ok = ok && assign == f.strings[0][0]
			if ok {
				end := f.strings[0][1]
				if f.tag != "" {
					end += probeKeys[i] + ">"
				}
				text, ok = strings.CutPrefix(text, end)
			}
		}
		if !ok {
			return errors.New("the second call is written in another way than the first")
		}
	}
	if text != tail {
		var ok bool
		f.closes, ok = strings.CutPrefix(ends.cut(text), ends.cut(tail))
		if !ok {
			return errors.New("what ends several calls is not what ends one")
		}
	}
	open, ok := numbered(opens[0], opens[1], 0)
	next, alike := numbered(nexts[1], nexts[2], 1)
	if !alike { // some templates end the calls before every one but the first and the second
		next, alike = nexts[1], f.closes != "" && strings.HasSuffix(nexts[2], strings.TrimPrefix(nexts[1], ends.cut(tail)))
	}
	if !ok || !alike {
		return errors.New("later calls are written in another way than the first")
	}
	f.open, f.next = open, next
	if _, behind, found := strings.Cut(next, indexMark); found {
		numberedAs := func(text string) string {
			before, ok := strings.CutSuffix(text, "0"+behind)
			if !ok {
				return text
			}
			return before + indexMark + behind
		}
		f.first, f.after = numberedAs(f.first), numberedAs(f.after)
		if !strings.Contains(f.first, indexMark) {
			return errors.New("calls are not numbered from 0")
		}
	}
	if strings.Contains(open, indexMark) && !object {
		f.none = strings.Replace(f.none, "0", indexMark, 1)
	}
	return nil
}

// numbered is the text that two successive calls share, the first with number n, with a mark in the
// place of the number.
func numbered(a, b string, n int) (string, bool) {
	if a == b {
		return a, true
	}
	at := len(shared(a, b))
	rest, ok := strings.CutPrefix(a[at:], strconv.Itoa(n))
	return a[:at] + indexMark + rest, ok && b == a[:at]+strconv.Itoa(n+1)+rest
}

// shared is the beginning that two texts share.
func shared(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return strings.ToValidUTF8(a[:n], "")
}

// sharedLength is the length of the beginning that two texts share, without a part of a control token or of a tag.
func (t *Template) sharedLength(a, b string) int {
	n := len(shared(a, b))
	for _, name := range t.Control {
		for k := min(n, len(name)-1); k > 0; k-- {
			if strings.HasPrefix(a[n-k:], name) {
				n -= k
				break
			}
		}
	}
	if open := strings.LastIndexByte(a[:n], '<'); open > strings.LastIndexByte(a[:n], '>') &&
		strings.IndexByte(a[n:], '>') >= 0 {
		n = open
	}
	return n
}

// thinkingTags are the tags of reasoning, which is no part of calls.
var thinkingTags = regexp.MustCompile(`(?is)^.*think[^<>]*>`)

func withoutThinking(text string) string { return thinkingTags.ReplaceAllString(text, "") }

// turnEnds knows what stands behind a turn of the assistant.
type turnEnds struct {
	t     *Template
	outro string   // behind the text of a turn without calls
	marks []string // between turns
}

// markup is a mark such as <|im_end|> or [/INST].
var markup = regexp.MustCompile(`<[^<>\s]+>|\[/?[A-Z_]+\]`)

// cut is what of the text behind a turn's last call the model writes before the turn ends: by a
// token that ends the text, by what stands behind the text of a turn without calls, or by a mark
// between turns.
func (e turnEnds) cut(tail string) string {
	end := len(tail)
	for id := range int32(e.t.Tokenizer.VocabSize()) {
		if !e.t.Tokenizer.IsEOG(id) {
			continue
		}
		if at := strings.Index(tail, e.t.Tokenizer.Text(id)); at >= 0 {
			end = min(end, at)
		}
	}
	if end == len(tail) {
		end = len(strings.TrimSuffix(tail, e.outro))
	}
	if end == len(tail) {
		for _, mark := range e.marks {
			if at := strings.Index(tail, mark); at >= 0 {
				end = min(end, at)
			}
		}
	}
	return strings.TrimRight(tail[:end], space)
}
