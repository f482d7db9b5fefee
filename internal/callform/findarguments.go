// How arguments are written: as an object of JSON, or one by one.

package callform

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

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
func (p *probe) singly(f *formOf, a *Arguments, rest string) (tail string, err error) {
	open, assign, behind, ok := cutSingle(rest, probeKeys[0], probeValues[0])
	switch {
	case !ok && strings.Contains(rest, probeKeys[0]):
		return "", errors.New("the arguments are not as they were given")
	case !ok:
		return "", errors.New("the arguments do not stand behind the name")
	case strings.Contains(behind, probeKeys[0]):
		return p.elements(f, a, open, assign, behind)
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

// elements finds out whether an argument is an element with its name, which begins with open and ends in behind.
func (p *probe) elements(f *formOf, a *Arguments, open, assign, behind string) (tail string, err error) {
	tag, tail, ok := strings.Cut(behind, "</"+probeKeys[0]+">")
	none, opens := strings.CutSuffix(open, tag+"<")
	if !ok || !opens || tag == "" || assign != ">" { // without more than a bracket, tags are not told from text
		return "", errors.New("the name of an argument stands twice")
	}
	f.tag, f.open = tag, open
	f.none, f.between = none, tag+"<"
	f.other = [2]string{assign, tag + "</"} // and the name
	f.strings = [][2]string{f.other}
	a.Nested = Notation{Tag: tag, Words: JSON.Words}
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
		return "", ErrNoCalls
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
func (p *probe) values(f *formOf, a *Arguments, tail string) error {
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
	a.Nested = Notation{Quote: parts[6], Key: parts[1], Colon: parts[3], Comma: parts[5],
		Words: Words{parts[4], parts[9], parts[11]}}
	if text, err = p.argument(f, quoteJSON(hard), tail); err != nil {
		return err
	}
	before, end, ok := strings.Cut(text, hard)
	if !ok {
		value, ended := strings.CutSuffix(strings.TrimPrefix(text, f.other[0]), f.other[1])
		var read string
		f.quoted = ended && json.Unmarshal([]byte(value), &read) == nil && read == hard
		if f.quoted {
			return nil
		}
		return fmt.Errorf("a string with quotes is written as %q", text)
	}
	if strange := [2]string{before, end}; strange != f.strings[0] {
		f.strings = append(f.strings, strange)
	}
	return nil
}

// nestedForm has the marks around names, the colon, true, the comma, the marks around strings, the
// comma, false, the comma and null.
var nestedForm = regexp.MustCompile(`^\{(.*?)qza(.*?)(: ?)\[(\w+)(, ?)(.*?)qzb(.*?)(, ?)(\w+)\](, ?).*qzd.*?: ?(\w+)\}\}$`)
