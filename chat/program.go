package chat

// Compiling a template. The engine runs what the file says, so the source is prepared first: tojson
// becomes a function of ours that keeps the order of keys also when it indents; every loop and macro
// counts its turns, and products and variables are measured, so that a hostile template ends in an error
// and not in an endless loop, an overflowing stack or exhausted memory. What is left open: one filter
// (replace, join) on two large texts may still make a huge one.

import (
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

const (
	maxSource  = 256 << 10
	maxTag     = 16 << 10  // of a tag that is looked through for tojson
	maxNesting = 200       // brackets within brackets, blocks within blocks, macros within macros
	maxTurns   = 2_000_000 // of all loops together
	maxRange   = 100_000
	maxOutput  = 64 << 20
)

type program struct{ tmpl *jinja.Template }

func compile(source string) (p *program, err error) {
	defer catch(&err)
	source, err = prepare(source)
	if err != nil {
		return nil, err
	}
	tmpl, err := jinja.Compile(source)
	if err != nil {
		return nil, err
	}
	return &program{tmpl}, nil
}

// catch makes an error of a panic in the engine.
func catch(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the template engine failed: %v", r)
	}
}

func (p *program) render(vars map[string]jinja.Value, now time.Time) (text string, err error) {
	defer catch(&err)
	turns, depth := 0, 0
	fn := func(name string, f func(args []jinja.Value, kwargs map[string]jinja.Value) (jinja.Value, error)) {
		vars[name] = jinja.NewCallable(name, f)
	}
	fn(nameTojson, tojson)
	fn(nameTurn, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
		if turns++; turns > maxTurns {
			return jinja.None(), fmt.Errorf("more than %d turns of its loops", maxTurns)
		}
		return jinja.None(), nil
	})
	fn(nameEnter, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
		turns++
		if depth++; depth > maxNesting || turns > maxTurns {
			return jinja.None(), fmt.Errorf("its macros call each other without end")
		}
		return jinja.None(), nil
	})
	fn(nameLeave, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
		depth--
		return jinja.None(), nil
	})
	fn(nameTimes, times)
	fn(nameSize, func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		if len(args) == 1 && (args[0].IsString() && len(args[0].AsString()) > maxOutput || args[0].IsList() && args[0].AsList().Len() > maxTurns) {
			return jinja.None(), fmt.Errorf("a variable of more than %d MB", maxOutput>>20)
		}
		return jinja.None(), nil
	})
	fn("range", limitedRange)
	fn("strftime_now", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		if len(args) != 1 || !args[0].IsString() {
			return jinja.None(), fmt.Errorf("strftime_now: wants one format")
		}
		return jinja.NewString(strftime(args[0].AsString(), now)), nil
	})
	text, err = p.tmpl.RenderValues(vars)
	if err == nil && len(text) > maxOutput {
		err = fmt.Errorf("the conversation takes more than %d MB of text", maxOutput>>20)
	}
	return text, err
}

// times is a product: of numbers, or of a text and how often it comes.
func times(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	a, b := args[0], args[1]
	if a.IsInt() && b.IsString() {
		a, b = b, a
	}
	number := func(v jinja.Value) (float64, bool) {
		if v.IsFloat() {
			return v.AsFloat(), true
		}
		if v.IsInt() {
			return float64(v.AsInt()), true
		}
		return 0, false
	}
	switch {
	case a.IsInt() && b.IsInt():
		return jinja.NewInt(a.AsInt() * b.AsInt()), nil
	case a.IsString() && b.IsInt():
		n := max(b.AsInt(), 0)
		if size := int64(len(a.AsString())); size > 0 && n > maxOutput/size {
			return jinja.None(), fmt.Errorf("a text of more than %d MB", maxOutput>>20)
		}
		return jinja.NewString(strings.Repeat(a.AsString(), int(n))), nil
	}
	x, ok1 := number(a)
	y, ok2 := number(b)
	if !ok1 || !ok2 {
		return jinja.None(), fmt.Errorf("a product of what are neither numbers nor a text and a whole number")
	}
	return jinja.NewFloat(x * y), nil
}

func limitedRange(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	n := []int64{0, 0, 1}
	for i, a := range args {
		if !a.IsInt() || i > 2 {
			return jinja.None(), fmt.Errorf("range: wants up to three integers")
		}
		n[i] = a.AsInt()
	}
	switch {
	case len(args) == 0 || n[2] == 0:
		return jinja.None(), fmt.Errorf("range: wants an end, and a step that is not 0")
	case len(args) == 1:
		n[0], n[1] = 0, n[0]
	}
	var items []jinja.Value
	for x := n[0]; n[2] > 0 && x < n[1] || n[2] < 0 && x > n[1]; x += n[2] {
		if items = append(items, jinja.NewInt(x)); len(items) > maxRange {
			return jinja.None(), fmt.Errorf("range: more than %d numbers", maxRange)
		}
	}
	return jinja.NewList(items), nil
}

// strftime is Python's, for the codes that templates use.
func strftime(format string, t time.Time) string {
	codes := map[byte]string{
		'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM",
		'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'Z': "MST", 'z': "-0700", 'e': "_2",
		'j': "002", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04",
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		trim := format[i] == '-' && i+1 < len(format) // no leading zero
		if trim {
			i++
		}
		layout, ok := codes[format[i]]
		switch text := t.Format(layout); {
		case format[i] == '%':
			b.WriteByte('%')
		case !ok:
			b.WriteString(format[i-1 : i+1])
		case trim:
			b.WriteString(strings.TrimLeft(text, "0"))
		default:
			b.WriteString(text)
		}
	}
	return b.String()
}
