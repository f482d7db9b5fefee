package chat

// Rewriting the expressions of a tag, so that what they cost is measured before it is spent.
//
// The engine has no limits. Each operand that an operator, a filter or a method reads, copies or
// prints therefore becomes a call of a function of ours, which adds its size to a meter (meter.go) and
// returns it:
//
//	m.content + x | upper     →  grove_copy(m.content) + grove_copy(grove_copy(x)|upper)
//
// Only what is understood here is written, so the engine sees nothing that was not measured.

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxNesting   = 64  // brackets within brackets, blocks within blocks, macros within macros
	maxOperators = 500 // of one tag: the engine goes down a level for each
)

// rewriter rewrites a tag's tokens.
type rewriter struct {
	tokens       []token
	depth, count int
	made         int // bytes of memory that its literal lists and dictionaries take
}

func (r *rewriter) peek(i int) token {
	if i < len(r.tokens) {
		return r.tokens[i]
	}
	return token{}
}

func (r *rewriter) next() token {
	t := r.peek(0)
	r.tokens = r.tokens[min(1, len(r.tokens)):]
	return t
}

func (r *rewriter) take(text string) bool {
	ok := r.peek(0).kind != textToken && r.peek(0).text == text
	if ok {
		r.next()
	}
	return ok
}

// An item is an operand or an operator of a sequence.
type item struct {
	text    string
	operand bool
	sign    string // before an operand
	cheap   bool   // an operator that looks at its operands' kinds or numbers alone
}

// How operands are measured where nothing else says it.
type use string

const (
	asIs   use = ""            // passed on
	copied use = "grove_copy"  // printed or copied
	walked use = "grove_walk"  // compared or searched
	nodes  use = "grove_nodes" // its elements are looked at, not their texts, and listed
	listed use = "grove_list"  // its elements are listed
	sliced use = "grove_slice" // some of its elements are listed
	looked use = "grove_look"  // not its elements
)

func (u use) of(text string) string {
	if u == asIs {
		return text
	}
	return string(u) + "(" + text + ")"
}

// sequence rewrites operands and operators up to a bracket that closes, or the end. bare is for
// operands that no operator reads.
func (r *rewriter) sequence(bare use, dict bool) (string, error) {
	if r.depth++; r.depth > maxNesting {
		return "", fmt.Errorf("more than %d brackets within each other", maxNesting)
	}
	defer func() { r.depth-- }()
	var items []item
	sign := ""
	for {
		t := r.peek(0)
		if t.kind == endToken || t.kind == signToken && strings.Contains(")]}", t.text) {
			break
		}
		after := len(items) > 0 && items[len(items)-1].operand
		switch {
		case t.kind == nameToken && after && t.text == "is":
			one, err := r.test()
			if err != nil {
				return "", err
			}
			items = append(items, one)
			items = append(items, item{operand: true}) // what it gives is a bool
		case t.kind == nameToken && slices.Contains([]string{"and", "or", "if", "else"}, t.text):
			r.next()
			items = append(items, item{text: t.text, cheap: true})
		case t.kind == nameToken && t.text == "not" && after && r.peek(1).text == "in":
			r.next()
			r.next()
			items = append(items, item{text: "not in"})
		case t.kind == nameToken && t.text == "not":
			r.next()
			items = append(items, item{text: "not", cheap: true})
		case t.kind == nameToken && t.text == "in":
			r.next()
			items = append(items, item{text: "in"})
		case t.kind == nameToken && r.peek(1) == (token{signToken, "="}): // a named argument
			r.next()
			r.next()
			items = append(items, item{text: t.text + "=", cheap: true})
		case t.kind != signToken || strings.Contains("([{", t.text):
			text, err := r.primary()
			if err != nil {
				return "", err
			}
			items = append(items, item{text: text, operand: true, sign: sign})
			sign = ""
			continue // counted with its fields and filters
		case !after && (t.text == "-" || t.text == "+"):
			r.next()
			sign += t.text + " "
		case t.text == "|" || t.text == "." || t.text == "=":
			return "", fmt.Errorf("%q stands at a wrong place", t.text)
		default:
			r.next()
			items = append(items, item{text: t.text, cheap: strings.Contains(",:", t.text) && !(dict && t.text == ":")})
			if t.text == "," || t.text == ":" {
				r.made += 100
			}
		}
		if r.count++; r.count > maxOperators {
			return "", fmt.Errorf("a tag of more than %d operands and operators", maxOperators)
		}
	}
	if sign != "" {
		return "", fmt.Errorf("%q stands at a wrong place", sign)
	}
	return join(items, bare), nil
}

// join writes the items, each operand measured as the operators beside it use it.
func join(items []item, bare use) string {
	op := func(i int) item {
		if i < 0 || i >= len(items) || items[i].operand {
			return item{cheap: true}
		}
		return items[i]
	}
	measured := func(i int, text string) string {
		u := bare
		for _, o := range []item{op(i - 1), op(i + 1)} {
			switch {
			case o.cheap:
			case o.text == "~" || o.text == "+":
				u = copied
			case u != copied:
				u = walked
			}
		}
		if text == "" || '0' <= text[0] && text[0] <= '9' || u != copied && (text[0] == '\'' || text[0] == '"') {
			return text // a literal
		}
		return u.of(text)
	}
	var b strings.Builder
	for i := 0; i < len(items); i++ {
		if !items[i].operand {
			b.WriteString(" " + items[i].text + " ")
			continue
		}
		// A product becomes a call, which bounds a text times a number. After /, // and % the left
		// side is a number; before ** the right side is a fraction: neither repeats a text.
		text := items[i].sign + items[i].text
		first := i
		for op(i+1).text == "*" && i+2 < len(items) && op(i+3).text != "**" && !slices.Contains([]string{"/", "//", "%", "**"}, op(first-1).text) {
			text = nameTimes + "(" + text + ", " + items[i+2].sign + items[i+2].text + ")"
			i += 2
		}
		if first != i {
			items[i].text = text
			b.WriteString(copied.of(text))
			continue
		}
		b.WriteString(items[i].sign + measured(i, items[i].text))
	}
	return b.String()
}

// test rewrites "is not name(arguments)".
func (r *rewriter) test() (item, error) {
	r.next()
	text := "is "
	if r.take("not") {
		text += "not "
	}
	name := r.next().text
	text += name
	_, cheap := map[string]bool{
		"defined": true, "undefined": true, "none": true, "boolean": true, "integer": true, "float": true, "number": true, "string": true,
		"mapping": true, "iterable": true, "sequence": true, "callable": true, "true": true, "false": true, "odd": true, "even": true,
	}[name]
	if r.take("(") {
		args, err := r.closed(")", walked, false)
		if err != nil {
			return item{}, err
		}
		text += "(" + args + ")"
	}
	return item{text: text, cheap: cheap}, nil
}

// closed rewrites what stands within a bracket, and takes the bracket that closes it.
func (r *rewriter) closed(bracket string, bare use, dict bool) (string, error) {
	text, err := r.sequence(bare, dict)
	if err == nil && !r.take(bracket) {
		err = fmt.Errorf("%q is missing", bracket)
	}
	return text, err
}

// primary rewrites an operand: a literal, a name or a bracket, with fields, indices, calls and filters.
func (r *rewriter) primary() (string, error) {
	t := r.next()
	text := t.text
	closing := map[string]string{"(": ")", "[": "]", "{": "}"}[t.text]
	if t.kind == signToken && closing != "" {
		r.made += 64
		if t.text == "{" {
			r.made += 400
		}
		inner, err := r.closed(closing, asIs, t.text == "{")
		if err != nil {
			return "", err
		}
		text = t.text + inner + closing
		if t.text == "{" {
			text += " " // two closing braces would end the tag
		}
	}
	for {
		if r.count++; r.count > maxOperators {
			return "", fmt.Errorf("a tag of more than %d operands and operators", maxOperators)
		}
		var err error
		switch {
		case r.take("."):
			text, err = r.field(text)
		case r.take("["):
			text, err = r.index(text)
		case r.take("("):
			var args string
			args, err = r.closed(")", asIs, false)
			text = nameCall + "(" + text + ")(" + args + ")"
		case r.take("|"):
			text, err = r.filter(text)
		default:
			return text, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// field rewrites a field, or the call of a method.
func (r *rewriter) field(of string) (string, error) {
	name := r.next()
	if name.kind != nameToken && name.kind != numberToken {
		return "", fmt.Errorf("%q is no name of a field", name.text)
	}
	_, own := methods[name.text]
	if !r.take("(") {
		if own {
			return "", fmt.Errorf("the method %s without a call", name.text)
		}
		return of + "." + name.text, nil
	}
	bare := copied
	if name.text == "append" || name.text == "insert" {
		bare = asIs
	}
	args, err := r.closed(")", bare, false)
	if own {
		return called("grove_method_"+name.text, of, args), err
	}
	u, ok := methodUses[name.text]
	if !ok {
		u = looked
	}
	return u.of(of) + "." + name.text + "(" + args + ")", err
}

// called writes a call of one of grove's functions, with the value that a method or a filter stands behind as the first argument.
func called(function, of, args string) string {
	if args != "" {
		args = ", " + args
	}
	return function + "(" + of + args + ")"
}

var methodUses = map[string]use{
	"items": listed, "keys": listed, "values": listed, "upper": copied, "lower": copied, "title": listed, "capitalize": listed,
}

// index rewrites an index or a slice. A slice with a step takes neither start nor end: the engine
// would count to any number.
func (r *rewriter) index(of string) (string, error) {
	var parts []string
	for {
		from := len(r.tokens)
		inner, err := r.part()
		if err != nil {
			return "", err
		}
		if len(parts) == 2 && (from-len(r.tokens) > 2 || strings.Trim(inner, "-+0123456789 ") != "" || parts[0] != "" || parts[1] != "") {
			return "", fmt.Errorf("a slice with a step must be [::number]")
		}
		parts = append(parts, inner)
		if r.take("]") {
			u := looked
			if len(parts) > 1 {
				u = sliced
			}
			return u.of(of) + "[" + strings.Join(parts, ":") + "]", nil
		}
		if !r.take(":") || len(parts) > 2 {
			return "", fmt.Errorf(`"]" is missing`)
		}
	}
}

// part rewrites what stands before the next colon of a slice.
func (r *rewriter) part() (string, error) {
	depth := 0
	for i, t := range r.tokens {
		switch {
		case t.kind != signToken:
		case strings.Contains("([{", t.text):
			depth++
		case strings.Contains(")]}", t.text):
			depth--
		}
		if depth < 0 || depth == 0 && t == (token{signToken, ":"}) {
			rest := r.tokens[i:]
			r.tokens = r.tokens[:i:i]
			text, err := r.sequence(copied, false)
			if err == nil && len(r.tokens) > 0 {
				err = fmt.Errorf("%q stands at a wrong place", r.tokens[0].text)
			}
			r.tokens = rest
			return text, err
		}
	}
	return "", fmt.Errorf(`"]" is missing`)
}

// filter rewrites a filter and its arguments.
func (r *rewriter) filter(of string) (string, error) {
	name := r.next()
	if name.kind != nameToken {
		return "", fmt.Errorf("%q is no name of a filter", name.text)
	}
	args, err := "", error(nil)
	if r.take("(") {
		args, err = r.closed(")", copied, false)
	}
	if _, ok := filters[name.text]; ok {
		return called("grove_filter_"+name.text, of, args), err
	}
	u, ok := filterUses[name.text]
	if !ok {
		u = copied
	}
	return u.of(of) + "|" + name.text + "(" + args + ")", err
}

// filterUses says which filters need less of their input than its copy.
var filterUses = map[string]use{
	"length": looked, "count": looked, "first": looked, "last": looked, "default": asIs, "d": asIs, "safe": asIs, "reverse": listed,
	"map": asIs, "title": listed, "capitalize": listed, "select": nodes, "reject": nodes, "selectattr": nodes, "rejectattr": nodes, "sort": nodes, "max": nodes, "min": nodes,
	"sum": nodes, "items": listed, "dictsort": listed,
}
