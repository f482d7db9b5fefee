package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// errNoCalls says that a chat template does not write calls of tools.
var errNoCalls = errors.New("the model's chat template does not know tools: it writes no calls")

// CallForm finds out how the model writes calls, by rendering conversations with calls through its chat template. Where the template leaves
// them out, or writes them in a form that grove does not know, the form is generic. The error says what keeps the template from that as well.
func (l *Layout) CallForm() (*CallForm, error) {
	l.calls.Do(func() { l.callForm, l.callErr = l.findCallForm() })
	return l.callForm, l.callErr
}

// findCallForm finds the form that the template writes, or else that of the generic text within the template.
func (l *Layout) findCallForm() (*CallForm, error) {
	form, err := l.probeForms(nil)
	if err == nil {
		return form, nil
	}
	g := l.newGeneric()
	form, failed := l.probeForms(g)
	if failed != nil {
		return nil, err
	}
	l.generic = g
	form.Generic = true
	return form, nil
}

// probeForms tries the ways in which templates want to be given calls. Of those that work the one with the shortest text counts:
// templates print what they were not made for in addition.
func (l *Layout) probeForms(g *generic) (best *CallForm, err error) {
	shortest := 0
	for _, p := range []probe{
		{content: `""`}, {content: "null"}, {content: `""`, text: true}, {content: "null", text: true},
		{content: `""`, named: true}, {content: "null", named: true},
	} {
		if best != nil && !best.printsDict() && (p.text && !best.TextArguments || p.named) {
			break
		}
		p.l, p.generic = l, g
		form, size, failed := p.form()
		switch {
		case failed != nil: // the first that says most
			if err == nil || errors.Is(err, errNotRendered) || errors.Is(err, errNoCalls) && !errors.Is(failed, errNotRendered) {
				err = failed
			}
		case best == nil || size < shortest || best.printsDict() && form.Arguments.Object:
			best, shortest = form, size
		}
	}
	if best != nil {
		return best, nil
	}
	if !errors.Is(err, errNoCalls) {
		err = fmt.Errorf("the model's chat template writes calls in a form that grove does not know: %w", err)
	}
	return nil, err
}

// printsDict reports whether the arguments are an object as Python prints it: the template was made for arguments as text.
func (f *CallForm) printsDict() bool {
	return !f.Arguments.Object && f.Arguments.Nested.Quote == "'" && strings.HasSuffix(f.Arguments.Open.String(), "{'")
}

// Texts of the conversations, which no template has.
const (
	probeUser    = "qzuser"
	probeContent = "qzcontent"
	idMark       = "\ufdd2" // in the place of the id
	indexMark    = "\ufdd3" // in the place of the number of the call
)

var (
	probeNames  = []string{"qzalpha", "qzbeta", "qzgamma"}
	probeKeys   = []string{"qzkeya", "qzkeyb", "qzkeyc"}
	probeValues = []string{"qzvala", "qzvalb", "qzvalc"}
)

// errNotRendered says that a template cannot render a conversation.
var errNotRendered = errors.New("the template does not take the conversation")

// probe is a way to give calls to a template.
type probe struct {
	l       *Layout
	generic *generic // what writes the calls; nil: the template
	content string   // of a turn with calls alone, in JSON
	text    bool     // arguments as text
	named   bool     // ids have the name and the number of the call
	long    bool     // ids are longer than Mistral's
}

// probeCall is a call of the tool with a number; arguments are names and values in JSON, in turn.
type probeCall struct {
	tool      int
	arguments []string
}

func quoteJSON(text string) string { return string(appendQuoted(nil, text)) }

func (c probeCall) object() string {
	var pairs []string
	for i := 0; i < len(c.arguments); i += 2 {
		pairs = append(pairs, quoteJSON(c.arguments[i])+": "+c.arguments[i+1])
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

func (p *probe) id(n int) string {
	if p.named {
		return fmt.Sprintf("functions.%s:%d", probeNames[n], n)
	}
	id := fmt.Sprintf("qzid0000%d", n+1)
	if p.long {
		id += "_" + id
	}
	return id
}

// render renders a turn of the assistant. It returns the text behind the user's.
func (p *probe) render(content string, calls ...probeCall) (string, error) {
	var list, tools []string
	for n, c := range calls {
		arguments := c.object()
		if p.text {
			arguments = quoteJSON(arguments)
		}
		list = append(list, fmt.Sprintf(`{"id": %q, "type": "function", "function": {"name": %q, "arguments": %s}}`,
			p.id(n), probeNames[c.tool], arguments))
	}
	for _, name := range probeNames {
		tools = append(tools, fmt.Sprintf(`{"type": "function", "function": {"name": %q, "description": "Does it.", "parameters": `+
			`{"type": "object", "properties": {"qzkeya": {"type": "string", "description": "A text."}}, "required": ["qzkeya"]}}}`, name))
	}
	extra := `{"content": ` + content
	if len(list) > 0 {
		extra += `, "tool_calls": [` + strings.Join(list, ", ") + `]`
	}
	messages := []Message{{Role: "user", Content: probeUser}, {Role: "assistant", Extra: json.RawMessage(extra + "}")}}
	options := Options{Tools: json.RawMessage("[" + strings.Join(tools, ", ") + "]")}
	if content == "" {
		messages, options.Prompt = messages[:1], true
	}
	text, err := p.l.renderAs(func() *generic { return p.generic }, messages, options, false)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotRendered, err)
	}
	at := strings.LastIndex(text, probeUser)
	if at < 0 {
		return "", fmt.Errorf("%w: it leaves the user's text out", errNotRendered)
	}
	text = text[at+len(probeUser):]
	for n := range calls {
		if !p.named {
			text = strings.ReplaceAll(text, p.id(n), idMark)
		}
	}
	return text, nil
}

// plain is a call of a tool with as many arguments, which are strings.
func plainCall(tool, arguments int) probeCall {
	c := probeCall{tool: tool}
	for i := range arguments {
		c.arguments = append(c.arguments, probeKeys[(tool+i)%3], quoteJSON(probeValues[(tool+i)%3]))
	}
	return c
}

// formOf is a form as it is found, with texts in which idMark and indexMark stand.
type formOf struct {
	first, after, next, last, closes, text string
	open, none, between                    string
	thought                                [2]string
	strings                                [][2]string
	other                                  [2]string
}

// form finds the form, and how long the text of a call is.
func (p *probe) form() (*CallForm, int, error) {
	one, err := p.render(p.content, plainCall(0, 1))
	if err != nil {
		return nil, 0, err
	}
	head, rest, ok := strings.Cut(one, probeNames[0])
	if !ok {
		return nil, 0, errNoCalls
	}
	form := &CallForm{TextArguments: p.text, NullContent: p.content == "null", NamesInIDs: p.named}
	form.Arguments.Nested, form.Arguments.Words = JSON, JSON.Words
	var f formOf
	tail := ""
	f.open, tail, ok = cutObject(rest, 0)
	if ok {
		form.Arguments.Object = true
		if err := p.spaces(&form.Arguments.Nested); err != nil {
			return nil, 0, err
		}
	} else if tail, err = p.singly(&f, &form.Arguments, rest); err != nil {
		return nil, 0, err
	}
	if err := p.sections(&f, form.Arguments.Object, head, tail); err != nil {
		return nil, 0, err
	}
	if err := p.fill(form, &f); err != nil {
		return nil, 0, err
	}
	if form.hasID() {
		long := *p
		long.long = true
		_, err := long.render(p.content, plainCall(0, 1))
		form.ShortIDs = err != nil
	}
	return form, len(one), p.verify(form)
}

// cutObject finds the arguments of a call of one argument as an object of JSON: what stands before and behind them.
func cutObject(text string, call int) (open, tail string, ok bool) {
	key := strings.Index(text, `"`+probeKeys[call]+`"`)
	at := strings.LastIndexByte(text[:max(key, 0)], '{')
	if key < 0 || at < 0 {
		return "", "", false
	}
	d := json.NewDecoder(strings.NewReader(text[at:]))
	var got any
	if d.Decode(&got) != nil || !reflect.DeepEqual(got, map[string]any{probeKeys[call]: probeValues[call]}) {
		return "", "", false
	}
	return text[:at], text[at+int(d.InputOffset()):], true
}

// spaces finds what stands between the parts of objects of JSON.
func (p *probe) spaces(n *Notation) error {
	text, err := p.call(probeCall{0, []string{"qza", "[true, false]"}})
	if err != nil {
		return err
	}
	if found := objectForm.FindStringSubmatch(text); found != nil {
		n.Colon, n.Comma = found[1], found[2]
	}
	return nil
}

var objectForm = regexp.MustCompile(`"qza"(: ?)\[true(, ?)false\]`)

// cutSingle finds the argument of a call of one argument: what stands before its name, before its value, and behind.
func cutSingle(text, key, value string) (open, assign, tail string, ok bool) {
	open, text, ok = strings.Cut(text, key)
	if ok {
		assign, tail, ok = strings.Cut(text, value)
	}
	return open, assign, tail, ok
}

// singly finds how arguments are written one by one. It returns what stands behind the last.
func (p *probe) singly(f *formOf, a *ArgumentForm, rest string) (tail string, err error) {
	open, assign, behind, ok := cutSingle(rest, probeKeys[0], probeValues[0])
	switch {
	case !ok && strings.Contains(rest, probeKeys[0]):
		return "", errors.New("the arguments are not as they were given")
	case !ok:
		return "", errors.New("the arguments do not stand behind the name")
	case strings.Contains(behind, probeKeys[0]):
		return "", errors.New("the name of an argument stands twice")
	case p.text:
		return "", errors.New("the arguments are no object")
	}
	f.open = open
	two, err := p.call(plainCall(0, 2))
	if err != nil {
		return "", err
	}
	_, _, two, _ = cutSingle(two, probeKeys[0], probeValues[0])
	between, second, last, ok := cutSingle(two, probeKeys[1], probeValues[1])
	if !ok || second != assign || last != behind {
		return "", errors.New("a second argument is written in another way than the first")
	}
	end := shared(between, behind)
	if at := strings.LastIndexByte(end, '>'); at >= 0 {
		end = end[:at+1]
	}
	if end == "" || assign == "" {
		return "", errors.New("nothing stands around a string")
	}
	tail = behind[len(end):]
	f.between, f.strings = between[len(end):], [][2]string{{assign, end}}
	none, err := p.call(plainCall(0, 0))
	if err != nil {
		return "", err
	}
	f.none, ok = strings.CutSuffix(none, tail)
	if !ok {
		return "", errors.New("a call without arguments is written in another way")
	}
	if err := p.values(f, a, tail); err != nil {
		return "", err
	}
	return tail, nil
}

// call renders a turn of one call, and returns the text behind its name.
func (p *probe) call(c probeCall) (string, error) {
	text, err := p.render(p.content, c)
	if err != nil {
		return "", err
	}
	_, text, ok := strings.Cut(text, probeNames[c.tool])
	if !ok {
		return "", errNoCalls
	}
	return text, nil
}

// argument renders a call with one argument, and returns what stands between its name and tail.
func (p *probe) argument(f *formOf, value, tail string) (string, error) {
	text, err := p.call(probeCall{0, []string{probeKeys[0], value}})
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(text, f.open+probeKeys[0])
	if ok {
		text, ok = strings.CutSuffix(text, tail)
	}
	if !ok {
		return "", fmt.Errorf("an argument %s is written in another way", value)
	}
	return text, nil
}

// values finds how values that are no plain strings are written.
func (p *probe) values(f *formOf, a *ArgumentForm, tail string) error {
	const number, hard = "8675309", "a \"b\" <c>\n'd' \\e &é"
	text, err := p.argument(f, number, tail)
	if err != nil {
		return err
	}
	var ok bool
	f.other[0], f.other[1], ok = strings.Cut(text, number)
	if !ok {
		return errors.New("a number is not written as it is")
	}
	word := func(value string) (string, error) {
		text, err := p.argument(f, value, tail)
		if err != nil {
			return "", err
		}
		text, ok := strings.CutPrefix(text, f.other[0])
		if ok {
			text, ok = strings.CutSuffix(text, f.other[1])
		}
		if !ok {
			return "", fmt.Errorf("an argument %s is written in another way than a number", value)
		}
		return text, nil
	}
	for value, to := range map[string]*string{"true": &a.Words.True, "false": &a.Words.False, "null": &a.Words.Null} {
		if *to, err = word(value); err != nil {
			return err
		}
	}
	if text, err = word(`{"qza": [true, "qzb", false], "qzc": {"qzd": null}}`); err != nil {
		return err
	}
	parts := nestedForm.FindStringSubmatch(text)
	if parts == nil || parts[1] != parts[2] || parts[6] != parts[7] || parts[5] != parts[8] {
		return fmt.Errorf("lists and objects are written as %q", text)
	}
	a.Nested = Notation{Quote: parts[6], Key: parts[1], Colon: parts[3], Comma: parts[5], Words: Words{parts[4], parts[9], parts[11]}}
	if text, err = p.argument(f, quoteJSON(hard), tail); err != nil {
		return err
	}
	before, end, ok := strings.Cut(text, hard)
	if !ok {
		return fmt.Errorf("a string with quotes is written as %q", text)
	}
	if strange := [2]string{before, end}; strange != f.strings[0] {
		f.strings = append(f.strings, strange)
	}
	return nil
}

// nestedForm has the marks around names, the colon, true, the comma, the marks around strings, the comma, false, the comma and null.
var nestedForm = regexp.MustCompile(`^\{(.*?)qza(.*?)(: ?)\[(\w+)(, ?)(.*?)qzb(.*?)(, ?)(\w+)\](, ?).*qzd.*?: ?(\w+)\}\}$`)

// sections finds what begins, parts and ends calls. one is the text of a turn of one call around its name and arguments.
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
	start := max(p.l.sharedLength(head, prompt), p.l.sharedLength(head, intro))
	f.first = withoutThinking(head[start:])
	f.text = p.l.opening(intro, prompt)
	f.after = f.first
	ends := turnEnds{l: p.l, outro: outro, marks: markup.FindAllString(intro, -1)}
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
	before, behind, _ := strings.Cut(both, probeContent)
	after, _, ok := strings.Cut(behind, probeNames[0])
	if !ok || strings.TrimSpace(after) == strings.TrimSpace(f.first) {
		return nil
	}
	begin := p.l.opening(before, prompt)
	if end, ok := strings.CutSuffix(after, f.first); ok && begin != "" && begin != f.text {
		f.thought = [2]string{begin, end}
	} else if len(ends.cut(after)) == len(strings.TrimRight(after, space)) { // in the same turn
		f.after = after
	}
	return nil
}

// opening is what of the text before the assistant's the prompt for it leaves to the model, reasoning apart.
func (l *Layout) opening(intro, prompt string) string {
	text := strings.TrimSpace(withoutThinking(intro[l.sharedLength(intro, prompt):]))
	if text == "" {
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
				text, ok = strings.CutPrefix(text, f.strings[0][1])
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

// numbered is the text that two successive calls share, the first with number n, with a mark in the place of the number.
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
func (l *Layout) sharedLength(a, b string) int {
	n := len(shared(a, b))
	for _, name := range l.control {
		for k := min(n, len(name)-1); k > 0; k-- {
			if strings.HasPrefix(a[n-k:], name) {
				n -= k
				break
			}
		}
	}
	if open := strings.LastIndexByte(a[:n], '<'); open > strings.LastIndexByte(a[:n], '>') && strings.IndexByte(a[n:], '>') >= 0 {
		n = open
	}
	return n
}

// thinkingTags are the tags of reasoning, which is no part of calls.
var thinkingTags = regexp.MustCompile(`(?is)^.*think[^<>]*>`)

func withoutThinking(text string) string { return thinkingTags.ReplaceAllString(text, "") }

// turnEnds knows what stands behind a turn of the assistant.
type turnEnds struct {
	l     *Layout
	outro string   // behind the text of a turn without calls
	marks []string // between turns
}

// markup is a mark such as <|im_end|> or [/INST].
var markup = regexp.MustCompile(`<[^<>\s]+>|\[/?[A-Z_]+\]`)

// cut is what of the text behind a turn's last call the model writes before the turn ends: by a token that ends the text, by what stands
// behind the text of a turn without calls, or by a mark between turns.
func (e turnEnds) cut(tail string) string {
	end := len(tail)
	for _, id := range e.l.tok.EOG() {
		if at := strings.Index(tail, e.l.tok.Text(id)); at >= 0 {
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

// fill puts the texts into the form, parted at control tokens.
func (p *probe) fill(form *CallForm, f *formOf) (err error) {
	part := func(text string) CallText {
		t, wrong := p.l.callText(text)
		if wrong != nil && err == nil {
			err = wrong
		}
		return t
	}
	a := &form.Arguments
	form.First = part(f.first).trimmed()
	form.Last = part(f.last)
	form.Text = part(f.text)
	if next, ended := p.l.callText(f.next); ended == nil { // where every call ends the turn there is one
		form.Next = next
	}
	form.After, form.Closes = part(f.after).trimmed(), part(f.closes)
	form.Thought = ValueForm{part(f.thought[0]), part(f.thought[1])}
	a.Open = part(f.open)
	a.None = part(f.none)
	a.Between = part(f.between)
	for _, s := range f.strings {
		a.Strings = append(a.Strings, ValueForm{part(s[0]), part(s[1])})
	}
	a.Other = ValueForm{part(f.other[0]), part(f.other[1])}
	return err
}

// callText parts a text at control tokens and marks. A token that ends the text cannot be in it.
func (l *Layout) callText(text string) (out CallText, err error) {
	literal := func(s string) {
		if s != "" {
			out = append(out, CallPart{CallLiteral, s})
		}
	}
	from := 0
	for at := 0; at < len(text); {
		p, n := CallPart{}, 0
		switch {
		case strings.HasPrefix(text[at:], idMark):
			p, n = CallPart{Kind: CallID}, len(idMark)
		case strings.HasPrefix(text[at:], indexMark):
			p, n = CallPart{Kind: CallIndex}, len(indexMark)
		default:
			for _, name := range l.control {
				if len(name) > n && strings.HasPrefix(text[at:], name) {
					p, n = CallPart{CallToken, name}, len(name)
				}
			}
		}
		if n == 0 {
			at++
			continue
		}
		if id, ok := l.tok.Find(p.Text); p.Kind == CallToken && ok && l.tok.IsEOG(id) {
			return nil, fmt.Errorf("%s, which ends the text, stands in a call", p.Text)
		}
		literal(text[from:at])
		out = append(out, p)
		at += n
		from = at
	}
	literal(text[from:])
	return out, nil
}

// verify reads rendered calls back.
func (p *probe) verify(form *CallForm) error {
	values := []string{`"a \"b\"\n'c' é"`, "-7", `{"qza": [true, {"qzb": null, "qzc": 1.5}], "qzd": "e f"}`, "true", "null", `[]`, `"7"`}
	calls := []probeCall{plainCall(0, 0)}
	for i, v := range values {
		calls[0].arguments = append(calls[0].arguments, fmt.Sprintf("qzk%d", i), v)
	}
	if len(form.Next) > 0 {
		calls = append(calls, plainCall(1, 2))
	}
	text, err := p.render(p.content, calls...)
	if err != nil {
		return err
	}
	first := form.First.String()
	if form.First.Mark() == "" || len(form.First) == 0 {
		_, text, _ = strings.Cut(text, probeNames[0])
		text = strings.NewReplacer("INDEX", "0", "ID", "qzid00001").Replace(first) + probeNames[0] + text
	} else {
		text = text[strings.LastIndex(text[:strings.Index(text, probeNames[0])], form.First.Mark()):]
	}
	text = strings.ReplaceAll(text, idMark, "qzid00001")
	kinds := func(_, argument string) (bool, bool) {
		i := strings.IndexByte("0123456", argument[len(argument)-1])
		text := i < 0 || values[i][0] == '"'
		return text, !text
	}
	_, _, got := form.NewReader(kinds).Add(text, true)
	if len(got) != len(calls) {
		return fmt.Errorf("of %d calls %d are read back", len(calls), len(got))
	}
	for i, c := range calls {
		var want, have any
		_ = json.Unmarshal([]byte(c.object()), &want)
		if json.Unmarshal([]byte(got[i].Arguments), &have) != nil || !reflect.DeepEqual(want, have) || got[i].Name != probeNames[c.tool] {
			return fmt.Errorf("arguments %s are read back as %s", c.object(), got[i].Arguments)
		}
	}
	return nil
}
