// Keywords for the parts of arrays and objects.

package grammar

import (
	"fmt"
	"maps"
)

// dependent narrows shapes to objects that lack a property or, with it, match a schema or have other properties.
func (c *schemas) dependent(list []*shape, p place, name string, v any) []*shape {
	all, ok := v.(*object)
	if !ok {
		c.fail(p, name, "want an object")
		return nil
	}
	for _, property := range all.names {
		v := all.values[property]
		without := func(s *shape) { s.absent = append(s.absent, property) }
		with := func(s *shape) { s.required = append(s.required, property) }
		list = either(list,
			func(list []*shape) []*shape { return only(list, isNull, isBool, isNumber, isString, isArray) },
			func(list []*shape) []*shape { return c.narrow(only(list, isObject), without, isObject) },
			func(list []*shape) []*shape {
				list = c.narrow(only(list, isObject), with, isObject)
				if _, ok := v.([]any); ok {
					names := c.strings(p, name, v)
					return c.narrow(list, func(s *shape) { s.required = append(s.required, names...) }, isObject)
				}
				return c.apply(list, term{place: p.sub(v, name, property)})
			})
		if c.crowded(p, name, len(list)) {
			return nil
		}
	}
	return list
}

// unevaluated narrows shapes to the values that a schema accepts whose unevaluatedItems or unevaluatedProperties is v.
func (c *schemas) unevaluated(list []*shape, p place, o *object, keyword string, v any) (out []*shape) {
	rest := &object{o.names, maps.Clone(o.values)} // the schema without the keyword, to which the rest applies
	delete(rest.values, keyword)
	k := isObject
	if keyword == "unevaluatedItems" {
		k = isArray
	}
	others := term{place: p.sub(v, keyword)}
	within := c.narrow(c.accept(universe(), p, rest), func(s *shape) {
		s.parts = append(s.parts, part{others: &others, seen: true})
	}, k)
	if !c.spend(keyword, len(list)*len(within)/16) {
		return nil
	}
	for _, a := range list {
		for _, b := range within {
			if n := intersect(a, b); n != nil && !c.impossible(n) {
				out = append(out, n)
			}
		}
	}
	return out
}

func (c *schemas) itemsPart(p place, o *object) (out part) {
	out.denied = c.denying > 0
	items, given := o.get("items")
	first, _ := o.get("prefixItems")
	keyword := "prefixItems"
	if list, ok := items.([]any); ok { // as in drafts before 2020-12
		first, keyword = list, "items"
		items, given = o.get("additionalItems")
	}
	if first != nil && len(fmt.Sprint(first)) > 2 {
		for _, t := range c.terms(p, keyword, first) {
			out.kids = append(out.kids, conj{t})
		}
	}
	if given {
		out.others = &term{place: p.sub(items, "items")}
	}
	return out
}

func (c *schemas) propertiesPart(p place, o *object) (out part) {
	out.denied = c.denying > 0
	if v, ok := o.get("properties"); ok {
		all, ok := v.(*object)
		if !ok {
			c.fail(p, "properties", "want an object")
			return out
		}
		for _, name := range all.names {
			out.names = append(out.names, name)
			out.kids = append(out.kids, conj{{place: p.sub(all.values[name], "properties", name)}})
		}
	}
	if v, ok := o.get("patternProperties"); ok {
		all, ok := v.(*object)
		if !ok {
			c.fail(p, "patternProperties", "want an object")
			return out
		}
		for _, pattern := range all.names {
			if e, err := schemaRegex(pattern); err != nil {
				c.fail(p, "patternProperties", "%v", err)
			} else if e.looksAhead() {
				c.fail(p, "patternProperties", "%s: lookaheads can stand in patterns of values alone", pattern)
			}
			out.patterns = append(out.patterns, pattern)
			out.matching = append(out.matching, conj{{place: p.sub(all.values[pattern], "patternProperties", pattern)}})
		}
	}
	if v, ok := o.get("additionalProperties"); ok {
		out.others = &term{place: p.sub(v, "additionalProperties")}
	}
	return out
}
