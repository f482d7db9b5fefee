package grammar

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// shape is a set of values of one type: the result of separating a schema's alternatives. Schemas
// within it are not yet expanded.
type shape struct {
	kind  kind
	value *string // the only value, as JSON: for strings, numbers, true, false and null

	number   bounds
	whole    bool
	broken   bool       // only numbers that are not integers
	multiple []*big.Rat // the number is a multiple of each

	least, most int // characters, items or properties; most is unlimited if there is no limit
	pattern     []string
	unlike      []string // patterns that must not match
	format      string
	excluded    []string // strings, decoded

	parts    []part // of objects and arrays
	required []string
	absent   []string
	names    conj // of properties
	contains []contained
	unique   bool
}

type kind string

const (
	isNull   kind = "null"
	isBool   kind = "boolean"
	isNumber kind = "number"
	isString kind = "string"
	isArray  kind = "array"
	isObject kind = "object"
)

// part is what one schema requires of the properties of an object or of the items of an array.
type part struct {
	names    []string // of properties, in order
	kids     []conj   // of named properties; of the first items
	patterns []string
	matching []conj
	others   *term // of all others; nil: no requirement
	unseen   int   // with seen: others applies to whatever no part from this one up to here mentions
	seen     bool
	denied   bool // from a negation: it mentions nothing
}

// contained requires that least to most items satisfy a schema.
type contained struct {
	term
	least, most int
}

func universe() []*shape {
	text := func(s string) *string { return &s }
	list := []*shape{{kind: isNull, value: text("null")}, {kind: isBool, value: text("true")},
		{kind: isBool, value: text("false")}}
	for _, k := range []kind{isNumber, isString, isArray, isObject} {
		list = append(list, &shape{kind: k, most: unlimited})
	}
	return list
}

func (s *shape) clone() *shape {
	n := *s
	n.multiple = slices.Clone(s.multiple)
	n.pattern, n.unlike = slices.Clone(s.pattern), slices.Clone(s.unlike)
	n.excluded = slices.Clone(s.excluded)
	n.parts = slices.Clone(s.parts)
	n.required = slices.Clone(s.required)
	n.absent = slices.Clone(s.absent)
	n.names, n.contains = slices.Clone(s.names), slices.Clone(s.contains)
	return &n
}

// key returns the same key for equal shapes. scoped reports that the scopes of schemas matter.
func (s *shape) key(scoped bool) string {
	var b strings.Builder
	terms := func(all conj) {
		for _, t := range all {
			b.WriteString(t.key(scoped) + ",")
		}
	}
	if s.value != nil {
		b.WriteString(*s.value)
	}
	for _, v := range slices.Concat([]*big.Rat{s.number.low, s.number.high}, s.multiple) {
		if v != nil { // printing nil costs a panic within fmt
			b.WriteString(v.String())
		}
		b.WriteString("|")
	}
	fmt.Fprint(&b, s.kind, s.number.lowOpen, s.number.highOpen, s.whole, s.broken, s.least, s.most, s.unique)
	fmt.Fprintf(&b, "%q%q%q%q%q%q", s.pattern, s.unlike, s.format, s.excluded, s.required, s.absent)
	for _, p := range s.parts {
		fmt.Fprintf(&b, "|%q%q%v%v%v", p.names, p.patterns, p.unseen, p.seen, p.denied)
		for _, kid := range slices.Concat(p.kids, p.matching) {
			terms(kid)
			b.WriteString(";")
		}
		if p.others != nil {
			terms(conj{*p.others})
		}
	}
	b.WriteString("|")
	terms(s.names)
	for _, k := range s.contains {
		fmt.Fprint(&b, k.key(scoped), k.least, k.most)
	}
	return b.String()
}

func (t term) key(scoped bool) string {
	key := fmt.Sprintf("%v%s", t.not, t.at)
	if scoped {
		key += "@" + t.scope
	}
	return key
}

func clones(list []*shape) []*shape {
	out := make([]*shape, len(list))
	for i, s := range list {
		out[i] = s.clone()
	}
	return out
}

func (s *shape) atLeast(n int) { s.least = max(s.least, n) }

func (s *shape) atMost(n int) {
	if s.most == unlimited || n < s.most {
		s.most = n
	}
}

// intersect returns the values that two shapes share; nil if there are none. Parts of b follow those of a, in order.
func intersect(a, b *shape) *shape {
	if a.kind != b.kind || a.value != nil && b.value != nil && !sameScalar(*a.value, *b.value) {
		return nil
	}
	n := a.clone()
	if n.value == nil {
		n.value = b.value
	}
	if b.number.low != nil {
		n.number.atLeast(b.number.low, b.number.lowOpen)
	}
	if b.number.high != nil {
		n.number.atMost(b.number.high, b.number.highOpen)
	}
	n.whole = n.whole || b.whole
	n.broken = n.broken || b.broken
	n.unique = n.unique || b.unique
	n.atLeast(b.least)
	if b.most != unlimited {
		n.atMost(b.most)
	}
	if b.format != "" {
		n.format = b.format
	}
	for _, p := range b.parts {
		if p.seen {
			p.unseen += len(a.parts)
		}
		n.parts = append(n.parts, p)
	}
	n.multiple = append(n.multiple, b.multiple...)
	n.pattern, n.unlike = append(n.pattern, b.pattern...), append(n.unlike, b.unlike...)
	n.excluded = append(n.excluded, b.excluded...)
	n.required, n.absent = append(n.required, b.required...), append(n.absent, b.absent...)
	n.names, n.contains = append(n.names, b.names...), append(n.contains, b.contains...)
	return n
}

func sameScalar(a, b string) bool {
	if a == b {
		return true
	}
	x, ok := new(big.Rat).SetString(a)
	y, also := new(big.Rat).SetString(b)
	return ok && also && x.Cmp(y) == 0
}

// impossible reports whether a shape visibly has no values.
func (c *schemas) impossible(s *shape) bool {
	if s.most != unlimited && s.least > s.most || s.whole && s.broken {
		return true
	}
	for _, name := range s.required {
		if slices.Contains(s.absent, name) {
			return true
		}
	}
	if s.value == nil {
		return s.number.low != nil && s.number.high != nil && s.number.low.Cmp(s.number.high) > 0
	}
	switch s.kind {
	case isNumber:
		v, ok := new(big.Rat).SetString(*s.value)
		if !ok || !s.number.holds(v) || s.whole && !v.IsInt() || s.broken && v.IsInt() {
			return true
		}
		return slices.ContainsFunc(s.multiple, func(m *big.Rat) bool { return !new(big.Rat).Quo(v, m).IsInt() })
	case isString:
		var text string
		_ = json.Unmarshal([]byte(*s.value), &text) // it was made by quote
		n := utf8.RuneCountInString(text)
		if n < s.least || s.most != unlimited && n > s.most || slices.Contains(s.excluded, text) {
			return true
		}
		return slices.ContainsFunc(s.unlike, func(p string) bool { return c.matches(p, text) }) ||
			slices.ContainsFunc(s.pattern, func(p string) bool { return !c.matches(p, text) })
	}
	return false
}

// pattern is a compiled pattern, and its approximate number of instructions. re is nil if the
// pattern is invalid, or has lookaheads: then ahead is set.
type pattern struct {
	re    *regexp.Regexp
	ahead *expr
	size  int
}

// matches reports whether a pattern matches anywhere in a text.
func (c *schemas) matches(source, text string) bool {
	p, known := c.patterns[source]
	if !known {
		if parsed, err := syntax.Parse(ecma(source), syntax.Perl); err == nil {
			p.size = size(parsed)
		}
		if !c.spend("pattern", p.size/8) {
			return false
		}
		p.re, _ = regexp.Compile(ecma(source))
		if e, err := schemaRegex(source); err == nil && e.looksAhead() {
			p.ahead = e
		}
		c.patterns[source] = p
	}
	if p.ahead != nil {
		return c.product(nil).accepts(p.ahead, text)
	}
	return c.spend("pattern", 1+p.size*len(text)/256) && p.re != nil && p.re.MatchString(text)
}

// size returns the approximate number of instructions in a pattern.
func size(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, part := range re.Sub {
		n += size(part)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// apply narrows shapes to the values that a schema accepts, or denies.
func (c *schemas) apply(list []*shape, t term) []*shape {
	c.depth++
	if c.depth > maxDepth {
		c.fail(t.place, "$ref", "it refers to itself, or is nested more than %d deep", maxDepth)
	}
	defer func() { c.depth-- }()
	c.work += 1 + len(list)
	if c.work > c.most {
		c.fail(t.place, "allOf", "its alternatives take too long to be told apart: make the schema simpler")
	}
	if len(list) > maxShapes {
		c.fail(t.place, "anyOf", "there are more than %d combinations of alternatives", maxShapes)
	}
	if c.err != nil {
		return nil
	}
	switch v := t.schema.(type) {
	case bool:
		if v == t.not {
			return nil
		}
		return list
	case *object:
		if t.not {
			return c.deny(list, t.place, v)
		}
		return c.accept(list, t.place, v)
	}
	c.fail(t.place, "schema", "want an object, true or false")
	return nil
}

// narrow changes the shapes of some kinds.
func (c *schemas) narrow(list []*shape, change func(*shape), kinds ...kind) []*shape {
	out := make([]*shape, 0, len(list))
	for _, s := range list {
		if slices.Contains(kinds, s.kind) {
			s = s.clone()
			change(s)
		}
		if !c.impossible(s) {
			out = append(out, s)
		}
	}
	return out
}

// only keeps the shapes of some kinds.
func only(list []*shape, kinds ...kind) []*shape {
	return slices.DeleteFunc(slices.Clone(list), func(s *shape) bool { return !slices.Contains(kinds, s.kind) })
}

// terms returns the schemas in a list.
func (c *schemas) terms(p place, keyword string, v any) (list []term) {
	all, ok := v.([]any)
	if !ok || len(all) == 0 {
		c.fail(p, keyword, "want a list of schemas")
	}
	for i, kid := range all {
		list = append(list, term{place: p.sub(kid, keyword, fmt.Sprint(i))})
	}
	return list
}

func (t term) negated() term { return term{t.place, !t.not} }

// either returns the union of the results of several ways to narrow shapes.
func either(list []*shape, ways ...func([]*shape) []*shape) (out []*shape) {
	for _, way := range ways {
		out = append(out, way(clones(list))...)
	}
	return out
}

// constant narrows shapes to a value. Objects and arrays are written as schemas.
func (c *schemas) constant(list []*shape, p place, v any) []*shape {
	text := ""
	switch v := v.(type) {
	case nil:
		text = "null"
	case *object, []any:
		return c.apply(list, term{place: p.constant(v)})
	case string:
		text = quote(v)
	default:
		text = fmt.Sprint(v)
	}
	k := kindOf(v)
	var out []*shape
	for _, s := range list {
		if n := intersect(s, &shape{kind: k, value: &text, most: unlimited}); n != nil && !c.impossible(n) {
			out = append(out, n)
		}
	}
	return out
}

// constant returns a schema for a single value. The places of its parts begin with its own, so that is short.
func (p place) constant(v any) place {
	text := jsonText(v)
	if len(text) > 2*sha256.Size {
		text = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	}
	p.schema, p.at = structure(v), p.at+"="+text
	return p
}

func kindOf(v any) kind {
	switch v.(type) {
	case nil:
		return isNull
	case bool:
		return isBool
	case string:
		return isString
	case []any:
		return isArray
	case *object:
		return isObject
	}
	return isNumber
}

// structure returns a schema for a single object or list.
func structure(v any) *object {
	o := &object{values: map[string]any{}}
	set := func(name string, v any) { o.names, o.values[name] = append(o.names, name), v }
	same := func(v any) *object { return &object{[]string{"const"}, map[string]any{"const": v}} }
	switch v := v.(type) {
	case []any:
		set("type", "array")
		var items []any
		for _, kid := range v {
			items = append(items, same(kid))
		}
		if len(items) > 0 {
			set("prefixItems", items)
		}
		set("items", false)
		set("minItems", json.Number(fmt.Sprint(len(v))))
	case *object:
		set("type", "object")
		properties := &object{v.names, map[string]any{}}
		var required []any
		for _, name := range v.names {
			properties.values[name] = same(v.values[name])
			required = append(required, name)
		}
		set("properties", properties)
		set("required", required)
		set("additionalProperties", false)
	}
	return o
}

func jsonText(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case []any:
		var b strings.Builder
		for _, kid := range v {
			b.WriteString(jsonText(kid) + ",")
		}
		return "[" + b.String() + "]"
	case *object:
		var b strings.Builder
		for _, name := range v.names {
			b.WriteString(quote(name) + ":" + jsonText(v.values[name]) + ",")
		}
		return "{" + b.String() + "}"
	}
	return fmt.Sprint(v)
}
