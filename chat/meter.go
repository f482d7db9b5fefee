package chat

// What rendering may cost, and the functions that measure it.

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

const (
	maxSource = 256 << 10
	maxTurns  = 200_000 // of all loops and macros together

	// Rendering may make maxMade bytes of text, lists and dictionaries, and 16 for each byte of the
	// conversation. It may take maxWork steps, and 64 for each byte: a step reads a byte.
	maxMade = 6 << 20
	maxWork = 64 << 20
)

// Names of functions that preparing puts into a template; no template has them.
const (
	nameOutput = "grove_output" // (value, length of the tag): prints it
	nameValue  = "grove_value"  // (value, length of the tag, bytes of its literals): keeps it
	nameLoop   = "grove_loop"   // (value, length of the tag): goes through its elements
	nameSelect = "grove_select" // the same, with a condition
	nameCall   = "grove_call"   // (function)
	nameMacro  = "grove_macro"  // (function): one that gives text
	nameTimes  = "grove_times"
	nameTurn   = "grove_turn"
	nameEnter  = "grove_enter"
	nameLeave  = "grove_leave"
	namePair   = "grove_pair"
	nameBlock  = "grove_block"
)

type (
	values   = []jinja.Value
	keywords = map[string]jinja.Value
	function = func(args values, kwargs keywords) (jinja.Value, error)
)

// meter counts what one rendering costs.
type meter struct {
	work, made       int
	maxWork, maxMade int
	turns, depth     int
}

func (m *meter) error() error {
	switch {
	case m.made > m.maxMade:
		return fmt.Errorf("it makes more than %d bytes of text and lists", m.maxMade)
	case m.work > m.maxWork:
		return fmt.Errorf("it takes more than %d steps", m.maxWork)
	case m.turns > maxTurns:
		return fmt.Errorf("more than %d turns of its loops", maxTurns)
	}
	return nil
}

// spend adds to the meter. briefly is memory that is dropped at once.
func (m *meter) spend(work, made, briefly int) error {
	m.work += work
	m.made += made + briefly
	err := m.error()
	m.made -= briefly
	return err
}

// size counts the elements of a value at every depth, and the bytes of their texts.
func (m *meter) size(v jinja.Value, depth int) (elements, bytes int, err error) {
	if depth > maxDepth {
		return 0, 0, fmt.Errorf("a value nested more than %d deep", maxDepth)
	}
	if err := m.spend(8, 0, 0); err != nil {
		return 0, 0, err
	}
	add := func(v jinja.Value) error {
		e, b, err := m.size(v, depth+1)
		elements, bytes = elements+e, bytes+b
		return err
	}
	elements = 1
	switch {
	case v.IsString():
		bytes = len(v.AsString())
	case v.IsList():
		for _, x := range v.AsList().Items {
			if err = add(x); err != nil {
				break
			}
		}
	case v.IsDict():
		for _, key := range v.AsDict().Keys {
			bytes += len(key)
			if err = add(v.AsDict().Data[key]); err != nil {
				break
			}
		}
	}
	return elements, bytes, err
}

// length is that of a text, a list or a dictionary, 0 of anything else.
func length(v jinja.Value) (n int, text bool) {
	switch {
	case v.IsString():
		return len(v.AsString()), true
	case v.IsList():
		return v.AsList().Len(), false
	case v.IsDict():
		return v.AsDict().Len(), false
	}
	return 0, false
}

// copied charges the value as it is printed.
func (m *meter) copied(v jinja.Value) error {
	elements, bytes, err := m.size(v, 0)
	if err != nil {
		return err
	}
	return m.spend(16+bytes, 24*(elements-1)+bytes, bytes)
}

func (m *meter) walked(v jinja.Value) error {
	_, bytes, err := m.size(v, 0)
	if err != nil {
		return err
	}
	return m.spend(16+bytes, 0, 0)
}

func (m *meter) nodes(v jinja.Value) error {
	if _, _, err := m.size(v, 0); err != nil {
		return err
	}
	return m.listed(v)
}

func (m *meter) listed(v jinja.Value) error {
	n, text := length(v)
	if text {
		return m.spend(n, n, 4*n)
	}
	return m.spend(n, 160*n, 0)
}

func (m *meter) sliced(v jinja.Value) error {
	n, text := length(v)
	if text {
		return m.spend(n, n, 4*n)
	}
	return m.spend(n, 24*n, 0)
}

func (m *meter) looked(v jinja.Value) error {
	n, text := length(v)
	if text {
		return m.spend(16+n, 0, 4*n)
	}
	return m.spend(16, 64, 0) // what an append adds
}

// loop charges what going through the value takes.
func (m *meter) loop(v jinja.Value) error {
	n, _ := length(v)
	if v.IsList() {
		return m.spend(n, 0, 0)
	}
	return m.spend(n, 48*n, 0)
}

// selected charges the same where a condition makes a new list.
func (m *meter) selected(v jinja.Value) error {
	if err := m.loop(v); err != nil {
		return err
	}
	return m.sliced(v)
}

// functions are those that a template may call.
func (m *meter) functions(now time.Time) map[string]function {
	none := jinja.None()
	fns := map[string]function{
		nameTurn: func(values, keywords) (jinja.Value, error) {
			m.turns++
			return none, m.spend(64, 0, 0)
		},
		nameEnter: func(values, keywords) (jinja.Value, error) {
			m.turns++
			if m.depth++; m.depth > maxNesting {
				return none, fmt.Errorf("its macros call each other without end")
			}
			return none, m.spend(64, 128, 0)
		},
		nameLeave: func(values, keywords) (jinja.Value, error) {
			m.depth--
			return none, nil
		},
		nameTimes: m.times,
		nameCall: func(args values, _ keywords) (jinja.Value, error) {
			if !args[0].IsCallable() {
				return none, fmt.Errorf("calls what is no function or macro")
			}
			return args[0], m.spend(64, 64, 0)
		},
		"range":           m.limitedRange,
		"raise_exception": m.raise,
		"joiner":          m.joiner,
		"strftime_now": func(args values, _ keywords) (jinja.Value, error) {
			if len(args) != 1 || !args[0].IsString() {
				return none, fmt.Errorf("strftime_now: wants one format")
			}
			return jinja.NewString(strftime(args[0].AsString(), now)), m.copied(args[0])
		},
	}
	// The second argument is the tag's length, and the third what its literals take.
	tag := func(use func(jinja.Value) error) function {
		return func(args values, _ keywords) (jinja.Value, error) {
			work, made := 0, 0
			if len(args) > 1 {
				work = int(args[1].AsInt())
			}
			if len(args) > 2 {
				made = int(args[2].AsInt())
			}
			if err := m.spend(work, made, 0); err != nil {
				return none, err
			}
			return args[0], use(args[0])
		}
	}
	for name, use := range map[string]func(jinja.Value) error{
		string(copied): m.copied, string(walked): m.walked, string(nodes): m.nodes, string(listed): m.listed, string(sliced): m.sliced,
		string(looked): m.looked, nameOutput: m.copied, nameLoop: m.loop, nameSelect: m.selected, nameValue: func(jinja.Value) error { return nil },
	} {
		fns[name] = tag(use)
	}
	for name, f := range methods {
		fns["grove_method_"+name] = m.method(name, f)
	}
	for name, f := range filters {
		fns["grove_filter_"+name] = func(args values, kwargs keywords) (jinja.Value, error) { return f(m, args, kwargs) }
	}
	return fns
}

// method calls one of ours on a text, and what a dictionary has under that name.
func (m *meter) method(name string, f func(m *meter, args values, kwargs keywords) (jinja.Value, error)) function {
	return func(args values, kwargs keywords) (jinja.Value, error) {
		if args[0].IsDict() {
			if v, ok := args[0].AsDict().Get(name); ok && v.IsCallable() {
				return v.AsCallable().Fn(args[1:], kwargs)
			}
		}
		if !args[0].IsString() {
			return jinja.None(), fmt.Errorf("%s is a method of texts", name)
		}
		return f(m, args, kwargs)
	}
}

// raise ends the rendering.
func (m *meter) raise(args values, _ keywords) (jinja.Value, error) {
	if len(args) == 0 {
		return jinja.None(), fmt.Errorf("raise_exception: missing message")
	}
	text, err := m.printed(args[0])
	if err == nil {
		err = fmt.Errorf("%s", text)
	}
	return jinja.None(), err
}

// joiner gives nothing at its first call, then the text between elements.
func (m *meter) joiner(args values, _ keywords) (jinja.Value, error) {
	text, err := ", ", error(nil)
	if len(args) > 0 {
		if text, err = m.printed(args[0]); err != nil {
			return jinja.None(), err
		}
	}
	first := true
	return jinja.NewCallable("joiner", func(values, keywords) (jinja.Value, error) {
		if first {
			first = false
			return jinja.NewString(""), nil
		}
		return jinja.NewString(text), nil
	}), nil
}

// printed is the text of a value, as the engine prints it.
func (m *meter) printed(v jinja.Value) (string, error) {
	if err := m.copied(v); err != nil {
		return "", err
	}
	switch {
	case v.IsString():
		return v.AsString(), nil
	case v.IsUndefined() || v.IsNone() || v.IsCallable():
		return "", nil
	case v.IsInt():
		return strconv.FormatInt(v.AsInt(), 10), nil
	}
	return v.String(), nil
}

// times is a product: of numbers, or of a text and how often it comes.
func (m *meter) times(args values, _ keywords) (jinja.Value, error) {
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
		return m.repeat(a.AsString(), b.AsInt())
	}
	x, ok1 := number(a)
	y, ok2 := number(b)
	if !ok1 || !ok2 {
		return jinja.None(), fmt.Errorf("a product of what are neither numbers nor a text and a whole number")
	}
	return jinja.NewFloat(x * y), nil
}

func (m *meter) repeat(s string, n int64) (jinja.Value, error) {
	if s == "" || n <= 0 {
		return jinja.NewString(""), nil
	}
	if n > int64(m.maxMade) {
		n = int64(m.maxMade) + 1 // more than there is room for
	}
	if err := m.spend(int(n), int(n)*len(s), 0); err != nil {
		return jinja.None(), err
	}
	return jinja.NewString(strings.Repeat(s, int(n))), nil
}

func (m *meter) limitedRange(args values, _ keywords) (jinja.Value, error) {
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
		if err := m.spend(1, 32, 0); err != nil {
			return jinja.None(), fmt.Errorf("range: %w", err)
		}
		items = append(items, jinja.NewInt(x))
	}
	return jinja.NewList(items), nil
}
