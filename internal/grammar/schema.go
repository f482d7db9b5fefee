package grammar

import (
	"cmp"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/callform"
)

// JSONSchema compiles a JSON schema (draft 2020-12). Every text of the grammar is a JSON value on
// one line, with ", " and ": " between its parts, that the schema accepts. The grammar may lack
// some such values; docs/serve.md lists them. A schema that cannot be honoured is refused, with the
// keyword and its place.
func JSONSchema(source string) (*Grammar, error) {
	g, root, err := readSchema(source)
	if err != nil {
		return nil, err
	}
	return g.compile(root)
}

func readSchema(source string) (*grammar, int, error) {
	c := newSchemas()
	rule, err := c.read(source)
	return &c.g, rule, err
}

func newSchemas() *schemas {
	return &schemas{notation: callform.JSON, most: maxApplied, shared: map[string]int{}, patterns: map[string]pattern{}}
}

// read adds the rules of a document, and returns the rule of those of its values that the other schemas also accept.
func (c *schemas) read(source string, others ...term) (int, error) {
	if err := c.open(source); err != nil {
		return 0, err
	}
	return c.value(append(conj{{place: c.root}}, others...)), c.err
}

// open begins a document.
func (c *schemas) open(source string) error {
	if err := checkSource(source); err != nil {
		return err
	}
	root, err := parseJSON(source)
	if err != nil {
		return err
	}
	c.root = place{at: "#", base: &url.URL{}}.sub(root)
	c.before = len(c.g.rules) - c.paired
	c.known = map[string]int{}
	c.ids = map[string]place{}
	c.anchors = map[string]place{}
	c.register(c.root)
	return nil
}

// place is a schema and its location.
type place struct {
	schema any
	at     string // JSON pointer
	base   *url.URL
	scope  string // the bases of the schemas that led here, for $dynamicRef
}

// escapePointer escapes a name in a JSON pointer.
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// sub is a schema within another.
func (p place) sub(v any, names ...string) place {
	at := p.at
	for _, name := range names {
		at += "/" + escapePointer.Replace(name)
	}
	base := p.base
	if o, ok := v.(*object); ok {
		if id, ok := o.values["$id"].(string); ok {
			if u, err := base.Parse(id); err == nil {
				base = u
			}
		}
	}
	return place{v, at, base, enter(p.scope, base)}
}

// enter adds a base to a scope. If it is already there, the first place counts.
func enter(scope string, base *url.URL) string {
	text := base.String() + " "
	if strings.Contains(" "+scope, " "+text) {
		return scope
	}
	return scope + text
}

// term is a schema, or its negation.
type term struct {
	place
	not bool
}

// conj is a conjunction of schemas.
type conj []term

// schemas compiles a document of schemas.
type schemas struct {
	g        grammar
	notation callform.Notation
	root     place
	known    map[string]int // rules for conjunctions
	shared   map[string]int // rules that all documents share
	patterns map[string]pattern
	ids      map[string]place // schemas that have an $id or an anchor
	anchors  map[string]place // dynamic ones
	depth    int
	at       string // of the schema whose values are written
	paired   int    // rules of products of patterns
	before   int    // other rules, of earlier documents
	work     int    // shapes that schemas were applied to
	most     int    // that they may be applied to
	denying  int    // depth of negations
	skipped  bool   // a keyword was found that cannot be violated
	several  bool   // uniqueItems must not restrict an array to one item
	others   bool   // values other than those of an unenforceable pattern will do
	left     error  // names those left out
	err      error
}

// Limits of a schema's expansion.
const (
	maxShapes  = 1 << 10
	maxRules   = 1 << 13
	maxPaired  = 1 << 14 // more rules, for products of patterns
	maxApplied = 1 << 17 // shapes to which schemas are applied; they take about a second
	maxItems   = 1 << 12 // limit of the bounds of arrays and objects, and of strings with a pattern
	maxLength  = 1 << 20 // limit of the bounds of other strings
)

func (c *schemas) fail(p place, keyword, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: keyword %s: %s", p.at, keyword, fmt.Sprintf(format, args...))
	}
}

// spend counts work, in shapes to which schemas are applied. It returns false if there is too much,
// or if there was another error.
func (c *schemas) spend(keyword string, work int) bool {
	c.work += work
	if c.work > c.most && c.err == nil {
		c.err = fmt.Errorf("keyword %s: it takes too long to compile: make the schema simpler", keyword)
	}
	return c.err == nil
}

// crowded fails if a keyword makes too many alternatives.
func (c *schemas) crowded(p place, keyword string, n int) bool {
	if n > maxShapes {
		c.fail(p, keyword, "there are more than %d combinations of alternatives", maxShapes)
	}
	return c.err != nil
}

// full fails if there are more rules than an automaton may have states.
func (c *schemas) full() bool {
	if len(c.g.rules) > maxNodes && c.err == nil {
		c.err = errStates
	}
	return c.err != nil
}

// register records the schemas that have an $id or an $anchor.
func (c *schemas) register(p place) {
	switch v := p.schema.(type) {
	case []any:
		for i, kid := range v {
			c.register(p.sub(kid, strconv.Itoa(i)))
		}
	case *object:
		if _, ok := v.values["$id"].(string); ok || p.at == "#" {
			c.ids[strings.TrimSuffix(p.base.String(), "#")] = p
		}
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := v.values[keyword].(string); ok {
				u := *p.base
				u.Fragment = name
				c.ids[u.String()] = p
				if keyword == "$dynamicAnchor" {
					c.anchors[u.String()] = p
				}
			}
		}
		for _, name := range v.names {
			if name == "enum" || name == "const" {
				continue
			}
			c.register(p.sub(v.values[name], name))
		}
	}
}

// resolve finds the schema that a reference names.
func (c *schemas) resolve(p place, keyword, ref string) (place, bool) {
	u, err := p.base.Parse(ref)
	if err != nil {
		c.fail(p, keyword, "%q is no reference", ref)
		return p, false
	}
	if found, ok := c.ids[strings.TrimSuffix(u.String(), "#")]; ok {
		return found, true
	}
	fragment := u.Fragment
	whole := *u
	whole.Fragment, whole.RawFragment = "", ""
	found, ok := c.ids[whole.String()]
	if !ok {
		c.fail(p, keyword, "%q is outside of the schema: put it into $defs", ref)
		return p, false
	}
	if fragment == "" {
		return found, true
	}
	if !strings.HasPrefix(fragment, "/") {
		c.fail(p, keyword, "%q is not in the schema", ref)
		return p, false
	}
	for name := range strings.SplitSeq(fragment[1:], "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		var kid any
		ok := false
		switch v := found.schema.(type) {
		case *object:
			kid, ok = v.get(name)
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
				kid, ok = v[i], true
			}
		}
		if !ok {
			c.fail(p, keyword, "%q is not in the schema", ref)
			return p, false
		}
		found = found.sub(kid, name)
	}
	return found, true
}

// value returns the rule of the values that all schemas of a conjunction accept.
func (c *schemas) value(all conj) int {
	var keys []string
	for _, t := range all {
		keys = append(keys, t.key(len(c.anchors) > 0))
	}
	slices.Sort(keys)
	key := strings.Join(slices.Compact(keys), " ")
	if rule, ok := c.known[key]; ok {
		return rule
	}
	name := "of any value"
	if len(all) > 0 {
		name = "of " + all[0].at
	}
	rule := c.g.add(name, nothing())
	c.known[key] = rule
	if len(c.g.rules)-c.paired-c.before > maxRules && c.err == nil {
		c.err = fmt.Errorf("%s: the schema takes more than %d rules: make it simpler", all[0].at, maxRules)
	}
	if c.err != nil {
		return rule
	}
	c.depth++
	if c.depth > maxDepth {
		c.err = fmt.Errorf("%s: the schema is nested more than %d deep", all[0].at, maxDepth)
		return rule
	}
	e := alt()
	var values []string
	outer := c.at
	if len(all) > 0 {
		c.at = all[0].at
	}
	for _, s := range c.shapes(all) {
		if s.value != nil {
			values = append(values, *s.value)
			continue
		}
		e.kids = append(e.kids, c.emit(s))
	}
	if len(values) > 0 {
		e.kids = append(e.kids, words(c.allWritten(values)))
	}
	c.g.rules[rule] = e
	c.depth--
	c.at = outer
	return rule
}

// ref returns value as an expression.
func (c *schemas) ref(all conj) *expr { return refer(c.value(all)) }

// shapes returns the alternatives of a conjunction.
func (c *schemas) shapes(all conj) []*shape {
	list := universe()
	for _, t := range all {
		list = c.apply(list, t)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s *shape) bool {
		key := s.key(len(c.anchors) > 0)
		twice := seen[key]
		seen[key] = true
		return twice || c.impossible(s)
	})
}

// number reads a keyword whose value is a number.
func (c *schemas) number(p place, keyword string, v any) *big.Rat {
	text := fmt.Sprint(v)
	if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok && len(exponent) > 4 {
		c.fail(p, keyword, "%s: the number is out of range", text)
		return new(big.Rat)
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok || len(text) > 400 {
		c.fail(p, keyword, "want a number")
		return new(big.Rat)
	}
	return n
}

// count reads a keyword whose value is an integer of 0 or more.
func (c *schemas) count(p place, keyword string, v any) int {
	n := c.number(p, keyword, v)
	if c.err == nil && (!n.IsInt() || n.Sign() < 0) {
		c.fail(p, keyword, "want a whole number of 0 or more")
	}
	limit := cmp.Or(map[kind]int{isString: maxLength}[sized(keyword)], maxItems)
	if !n.IsInt() || !n.Num().IsInt64() || n.Num().Int64() > int64(limit) {
		if strings.HasPrefix(keyword, "max") {
			return limit // a shorter text than allowed is still allowed
		}
		c.fail(p, keyword, "want at most %d", limit)
		return 0
	}
	return int(n.Num().Int64())
}
