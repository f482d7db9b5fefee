package chat

// Compiling a template and running it. The engine runs what the source says and has no limits, so the
// source is prepared first (prepare.go): a hostile template ends in an error, and not in an endless
// loop, an overflowing stack or exhausted memory.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

type program struct {
	tmpl   *jinja.Template
	called []string // macros that call blocks may call
}

func compile(source string) (p *program, err error) {
	defer catch(&err)
	source, called, err := prepare(source)
	if err != nil {
		return nil, err
	}
	tmpl, err := jinja.Compile(source)
	if err != nil {
		return nil, err
	}
	return &program{tmpl, called}, nil
}

// catch makes an error of a panic in the engine.
func catch(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the template engine failed: %v", r)
	}
}

// render runs the template. vars gets the functions of ours.
func (p *program) render(vars map[string]jinja.Value, now time.Time) (text string, err error) {
	defer catch(&err)
	m := &meter{maxWork: maxWork, maxMade: maxMade}
	input := 0
	for _, v := range vars {
		elements, bytes, err := m.size(v, 0)
		if err != nil {
			return "", err
		}
		input += 16*elements + bytes
		m.work, m.maxWork = 0, maxWork+64*input
	}
	m.maxMade += 16 * input
	for name, f := range m.functions(now) {
		vars[name] = jinja.NewCallable(name, f)
	}
	vars[nameMacro] = jinja.NewCallable(nameMacro, func(args values, _ keywords) (jinja.Value, error) {
		if !args[0].IsCallable() || !slices.Contains(p.called, args[0].AsCallable().Name) {
			return jinja.None(), fmt.Errorf("call: wants a macro")
		}
		return args[0], m.spend(64, 64, 0)
	})
	return p.tmpl.RenderValues(vars)
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
			b.WriteString(strings.TrimLeft(text[:len(text)-1], "0") + text[len(text)-1:]) // midnight is 0
		default:
			b.WriteString(text)
		}
	}
	return b.String()
}
