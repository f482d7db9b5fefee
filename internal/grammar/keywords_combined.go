// Keywords that combine schemas.

package grammar

import (
	"cmp"
	"slices"
)

// checkDenial fails if a negation left nothing because violating a keyword is not supported.
func (c *schemas) checkDenial(p place, keyword string, before, after []*shape) {
	if len(after) == 0 && len(before) > 0 && c.skipped {
		c.fail(p, keyword, "no value can be told not to match: use anyOf, or type and const to tell values apart")
	}
}

// anyOf returns the values that match one of some schemas. Strings whose pattern cannot be enforced,
// such as pydantic's for Decimal, are left out if values other than null remain, which are also valid.
func (c *schemas) anyOf(list []*shape, all []term) (out []*shape) {
	others, left := c.others, c.left
	c.others, c.left = (others || len(all) > 1) && c.denying == 0, nil
	for _, t := range all {
		out = append(out, c.apply(clones(list), t)...)
	}
	if !slices.ContainsFunc(out, func(s *shape) bool { return s.kind != isNull }) {
		if others {
			left = cmp.Or(left, c.left)
		} else {
			c.err = cmp.Or(c.err, c.left)
		}
	}
	c.others, c.left = others, left
	return out
}

// oneOf returns the values that match exactly one of some schemas.
func (c *schemas) oneOf(list []*shape, p place, o *object, all []term) (out []*shape) {
	property := ""
	if d, ok := o.values["discriminator"].(*object); ok { // OpenAPI's
		property, ok = d.values["propertyName"].(string)
		if ok { // it determines which schema applies
			list = c.narrow(list, func(s *shape) { s.required = append(s.required, property) }, isObject)
		}
	}
	tags := make([]map[string][]string, len(all))
	for i, t := range all {
		tags[i] = c.tags(t, property)
	}
	for i, t := range all {
		one := c.apply(clones(list), t)
		for j, other := range all {
			if j != i && !tagsDiffer(tags[i], tags[j]) && !c.apart(one, other) {
				one = c.apply(one, other.negated())
			}
		}
		out = append(out, one...)
	}
	c.checkDenial(p, "oneOf", list, out)
	return out
}

// tags returns the texts that an object's schema lists for its required properties, and for another one.
func (c *schemas) tags(t term, property string) map[string][]string {
	for range maxDepth {
		o, _ := t.schema.(*object)
		if o == nil || o.values["$ref"] == nil {
			break
		}
		found, ok := c.reference(t.place, "$ref", o.values["$ref"])
		if !ok {
			return nil
		}
		t = found
	}
	o, _ := t.schema.(*object)
	if o == nil || o.values["type"] != "object" {
		return nil
	}
	properties, _ := o.values["properties"].(*object)
	required, _ := o.values["required"].([]any)
	tags := map[string][]string{}
	for _, name := range append(slices.Clip(required), property) {
		name, _ := name.(string)
		if properties == nil {
			break
		}
		kid, _ := properties.values[name].(*object)
		if kid == nil {
			continue
		}
		values, _ := kid.values["enum"].([]any)
		if v, ok := kid.get("const"); ok {
			values = []any{v}
		}
		var texts []string
		for _, v := range values {
			if text, isText := v.(string); isText {
				texts = append(texts, text)
			}
		}
		if len(texts) == len(values) && len(texts) > 0 {
			tags[name] = texts
		}
	}
	return tags
}

// tagsDiffer reports whether no object has the tags of two schemas.
func tagsDiffer(a, b map[string][]string) bool {
	for name, texts := range a {
		other := b[name]
		if len(other) > 0 && !slices.ContainsFunc(texts, func(text string) bool { return slices.Contains(other, text) }) {
			return true
		}
	}
	return false
}

// apart reports whether a schema visibly has none of the values of some shapes: a required property
// has a different constant.
func (c *schemas) apart(list []*shape, t term) bool {
	defer func(others bool) { c.others = others }(c.others)
	c.others = false
	differs := func(s *shape, name string) bool {
		all := c.property(s, name, nil)
		return !slices.ContainsFunc(all, func(t term) bool { return !t.lists() }) && len(c.shapes(all)) == 0
	}
	return !slices.ContainsFunc(c.apply(clones(list), t), func(s *shape) bool {
		return !slices.ContainsFunc(s.required, func(name string) bool { return differs(s, name) })
	})
}

// lists reports whether a schema lists its values.
func (t term) lists() bool {
	o, ok := t.schema.(*object)
	return ok && !t.not && (o.values["const"] != nil || o.values["enum"] != nil)
}

// branch applies then or else, if present.
func (c *schemas) branch(list []*shape, p place, o *object, name string) []*shape {
	if v, ok := o.get(name); ok {
		return c.apply(list, term{place: p.sub(v, name)})
	}
	return list
}
