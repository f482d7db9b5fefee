// The values that a keyword does not accept, for not, oneOf and if.

package grammar

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
)

// deny narrows shapes to the values that a schema does not accept, which violate one of its
// keywords. A keyword that cannot be violated yields nothing.
func (c *schemas) deny(list []*shape, p place, o *object) (out []*shape) {
	c.denying++
	defer func() { c.denying-- }()
	for _, name := range o.names {
		if v, ok := o.get(name); ok {
			out = append(out, c.violate(clones(list), p, o, name, v)...)
		}
	}
	return out
}

// violate narrows shapes to the values that a keyword does not accept.
func (c *schemas) violate(list []*shape, p place, o *object, name string, v any) []*shape {
	here := func(v any, names ...string) term { return term{place: p.sub(v, names...)} }
	switch name {
	case "$ref", "$dynamicRef":
		if t, ok := c.reference(p, name, v); ok {
			return c.apply(list, t.negated())
		}
	case "type":
		return c.types(list, p, v, true)
	case "const", "enum":
		values := []any{v}
		if name == "enum" {
			values, _ = v.([]any)
		}
		for _, v := range values {
			if !c.spend(name, 1+len(list)/16) {
				return nil
			}
			list = c.except(list, p, v)
		}
		return list
	case "allOf":
		var out []*shape
		for _, t := range c.terms(p, name, v) {
			out = append(out, c.apply(clones(list), t.negated())...)
		}
		return out
	case "anyOf", "oneOf": // oneOf: only values that match none, not those that match several
		for _, t := range c.terms(p, name, v) {
			list = c.apply(list, t.negated())
		}
		return list
	case "not":
		return c.apply(list, here(v, name))
	case "if":
		condition := here(v, name)
		way := func(condition term, branch string) func([]*shape) []*shape {
			return func(list []*shape) []*shape {
				b, ok := o.get(branch)
				if !ok {
					return nil
				}
				return c.apply(c.apply(list, condition), here(b, branch).negated())
			}
		}
		return either(list, way(condition, "then"), way(condition.negated(), "else"))
	case "pattern":
		text, _ := v.(string)
		if e, err := schemaRegex(text); err == nil && !e.looksAhead() {
			return c.narrow(only(list, isString), func(s *shape) { s.unlike = append(s.unlike, text) }, isString)
		}
		c.skipped = true
	case "format":
		text, _ := v.(string)
		if known := formats[text]; known != nil {
			return c.narrow(only(list, isString), func(s *shape) { s.unlike = append(s.unlike, known[0]) }, isString)
		}
		c.skipped = true
	case "minimum", "exclusiveMinimum":
		n := c.number(p, name, v)
		return c.narrow(only(list, isNumber), func(s *shape) { s.number.atMost(n, name == "minimum") }, isNumber)
	case "maximum", "exclusiveMaximum":
		n := c.number(p, name, v)
		return c.narrow(only(list, isNumber), func(s *shape) { s.number.atLeast(n, name == "maximum") }, isNumber)
	case "minLength", "minItems", "minProperties":
		if n := c.count(p, name, v); n > 0 {
			return c.narrow(only(list, sized(name)), func(s *shape) { s.atMost(n - 1) }, sized(name))
		}
	case "maxLength", "maxItems", "maxProperties":
		n := c.count(p, name, v)
		return c.narrow(only(list, sized(name)), func(s *shape) { s.atLeast(n + 1) }, sized(name))
	case "required":
		var out []*shape
		for _, property := range c.strings(p, name, v) {
			out = append(out, c.narrow(only(list, isObject), func(s *shape) { s.absent = append(s.absent, property) },
				isObject)...)
			if c.crowded(p, name, len(out)) {
				return nil
			}
		}
		return out
	case "properties":
		all, _ := v.(*object)
		var out []*shape
		for i := range c.propertiesPart(p, o).names {
			property := all.names[i]
			wrong := part{names: []string{property}, kids: []conj{{here(all.values[property], name, property).negated()}},
				denied: true}
			out = append(out, c.narrow(only(list, isObject), func(s *shape) {
				s.required, s.parts = append(s.required, property), append(s.parts, wrong)
			}, isObject)...)
			if c.crowded(p, name, len(out)) {
				return nil
			}
		}
		return out
	case "additionalProperties":
		own := c.propertiesPart(p, o)
		var out []*shape
		for _, s := range only(list, isObject) {
			for _, property := range s.properties() { // one that the schema does not mention
				mentioned := slices.Contains(own.names, property) ||
					slices.ContainsFunc(own.patterns, func(pattern string) bool { return c.matches(pattern, property) })
				if v == false && !mentioned && !c.crowded(p, name, len(out)) {
					other := s.clone()
					other.required = append(other.required, property)
					out = append(out, other)
				}
			}
		}
		c.skipped = true // for properties that nothing names
		return out
	case "prefixItems", "items":
		if _, both := o.get("prefixItems"); name == "items" && both {
			return nil
		}
		items := c.itemsPart(p, o)
		if items.others != nil { // the first item to which it applies
			items.kids = append(items.kids, conj{*items.others})
		}
		var out []*shape
		for i, kid := range items.kids {
			wrong := part{kids: make([]conj, i+1), denied: true}
			wrong.kids[i] = conj{kid[0].negated()}
			out = append(out, c.narrow(only(list, isArray), func(s *shape) {
				s.atLeast(i + 1)
				s.parts = append(s.parts, wrong)
			}, isArray)...)
			if c.crowded(p, name, max(i, len(out))) {
				return nil
			}
		}
		return out
	case "contains":
		if _, ok := o.get("minContains"); !ok {
			none := here(v, name).negated()
			return c.narrow(only(list, isArray), func(s *shape) {
				s.parts = append(s.parts, part{others: &none, denied: true})
			}, isArray)
		}
	case "title", "description", "default", "examples", "$comment", "$defs", "definitions", "$schema", "$id", "$anchor",
		"$dynamicAnchor", "then", "else", "deprecated", "readOnly", "writeOnly": // no value violates them
	default:
		c.skipped = true
	}
	return nil
}

// except removes a value from shapes.
func (c *schemas) except(list []*shape, p place, v any) (out []*shape) {
	for _, s := range list {
		if s.kind != kindOf(v) {
			out = append(out, s)
			continue
		}
		switch v := v.(type) {
		case string:
			s.excluded = append(s.excluded, v)
			if !c.impossible(s) {
				out = append(out, s)
			}
		case json.Number:
			n := c.number(p, "const", v)
			below, above := s.clone(), s.clone()
			below.number.atMost(n, true)
			above.number.atLeast(n, true)
			for _, s := range []*shape{below, above} {
				if !c.impossible(s) {
					out = append(out, s)
				}
			}
		case bool:
			if *s.value != fmt.Sprint(v) {
				out = append(out, s)
			}
		case *object, []any:
			t := term{p.constant(v), true}
			out = append(out, c.apply([]*shape{s}, t)...)
		}
	}
	return out
}

var one = big.NewRat(1, 1)
