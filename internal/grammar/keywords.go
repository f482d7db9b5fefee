package grammar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// accept narrows shapes to the values that a schema accepts. Unknown keywords impose nothing.
func (c *schemas) accept(list []*shape, p place, o *object) []*shape {
	for _, keyword := range []string{"unevaluatedProperties", "unevaluatedItems"} {
		if v, ok := o.get(keyword); ok && v != true {
			return c.unevaluated(list, p, o, keyword, v)
		}
	}
	for _, name := range o.names {
		if v, ok := o.get(name); ok {
			list = c.keyword(list, p, o, name, v)
		}
		if c.err != nil {
			return nil
		}
	}
	return list
}

// keyword narrows shapes to the values that one keyword accepts.
func (c *schemas) keyword(list []*shape, p place, o *object, name string, v any) []*shape {
	here := func(v any, names ...string) term { return term{place: p.sub(v, names...)} }
	switch name {
	case "$ref", "$dynamicRef":
		if t, ok := c.reference(p, name, v); ok {
			return c.apply(list, t)
		}
	case "$recursiveRef":
		c.fail(p, name, "it is not supported: use $ref")
	case "type":
		return c.types(list, p, v, false)
	case "const":
		return c.constant(list, p, v)
	case "enum":
		values, ok := v.([]any)
		if !ok {
			c.fail(p, name, "want a list of values")
		}
		var out []*shape
		if !c.spend(name, len(list)*len(values)/32) {
			return nil
		}
		for _, v := range values {
			out = append(out, c.constant(clones(list), p, v)...)
			if c.crowded(p, name, len(out)-len(values)) {
				return nil
			}
		}
		return out
	case "allOf":
		for _, t := range c.terms(p, name, v) {
			list = c.apply(list, t)
		}
	case "anyOf":
		return c.anyOf(list, c.terms(p, name, v))
	case "oneOf":
		return c.oneOf(list, p, o, c.terms(p, name, v))
	case "not":
		out := c.apply(list, here(v, name).negated())
		c.checkDenial(p, name, list, out)
		return out
	case "if":
		condition := here(v, name)
		return either(list,
			func(list []*shape) []*shape { return c.branch(c.apply(list, condition), p, o, "then") },
			func(list []*shape) []*shape { return c.branch(c.apply(list, condition.negated()), p, o, "else") })
	case "minimum", "exclusiveMinimum":
		n := c.number(p, name, v)
		return c.narrow(list, func(s *shape) { s.number.atLeast(n, name != "minimum") }, isNumber)
	case "maximum", "exclusiveMaximum":
		n := c.number(p, name, v)
		return c.narrow(list, func(s *shape) { s.number.atMost(n, name != "maximum") }, isNumber)
	case "multipleOf":
		n := c.number(p, name, v)
		if n.Sign() <= 0 {
			c.fail(p, name, "want more than 0")
		}
		return c.narrow(list, func(s *shape) { s.multiple = append(s.multiple, n) }, isNumber)
	case "minLength", "minItems", "minProperties":
		n := c.count(p, name, v)
		return c.narrow(list, func(s *shape) { s.atLeast(n) }, sized(name))
	case "maxLength", "maxItems", "maxProperties":
		n := c.count(p, name, v)
		return c.narrow(list, func(s *shape) { s.atMost(n) }, sized(name))
	case "pattern":
		text, _ := v.(string)
		if _, err := schemaRegex(text); err != nil && c.others {
			c.left = cmp.Or(c.left, fmt.Errorf("%s: keyword %s: %w", p.at, name, err))
			return slices.DeleteFunc(list, func(s *shape) bool { return s.kind == isString })
		} else if err != nil {
			c.fail(p, name, "%v", err)
		}
		return c.narrow(list, func(s *shape) { s.pattern = append(s.pattern, text) }, isString)
	case "format":
		text, _ := v.(string)
		return c.narrow(list, func(s *shape) { s.format = text }, isString)
	case "uniqueItems":
		if v == true {
			return c.narrow(list, func(s *shape) { s.unique = true }, isArray)
		}
	case "contains":
		k := contained{here(v, name), 1, unlimited}
		if v, ok := o.get("minContains"); ok {
			k.least = c.count(p, "minContains", v)
		}
		if v, ok := o.get("maxContains"); ok {
			k.most = c.count(p, "maxContains", v)
		}
		return c.narrow(list, func(s *shape) { s.contains = append(s.contains, k) }, isArray)
	case "prefixItems", "items":
		if _, both := o.get("prefixItems"); name == "prefixItems" || !both {
			items := c.itemsPart(p, o)
			return c.narrow(list, func(s *shape) { s.parts = append(s.parts, items) }, isArray)
		}
	case "required":
		names := c.strings(p, name, v)
		return c.narrow(list, func(s *shape) { s.required = append(s.required, names...) }, isObject)
	case "propertyNames":
		return c.narrow(list, func(s *shape) { s.names = append(s.names, here(v, name)) }, isObject)
	case "properties", "patternProperties", "additionalProperties":
		for _, first := range []string{"properties", "patternProperties", "additionalProperties"} {
			if _, ok := o.get(first); ok && first == name {
				properties := c.propertiesPart(p, o)
				return c.narrow(list, func(s *shape) { s.parts = append(s.parts, properties) }, isObject)
			} else if ok {
				break
			}
		}
	case "dependentRequired", "dependentSchemas", "dependencies":
		return c.dependent(list, p, name, v)
	}
	return list
}

func sized(keyword string) kind {
	switch keyword[3:] {
	case "Length":
		return isString
	case "Items":
		return isArray
	}
	return isObject
}

// reference finds the schema that a reference names. If a dynamic reference names a dynamic anchor,
// the outermost schema that has it counts.
func (c *schemas) reference(p place, keyword string, v any) (term, bool) {
	ref, _ := v.(string)
	found, ok := c.resolve(p, keyword, ref)
	if !ok {
		return term{}, false
	}
	_, anchor, _ := strings.Cut(ref, "#")
	if o, _ := found.schema.(*object); keyword == "$dynamicRef" && o != nil && anchor != "" &&
		o.values["$dynamicAnchor"] == anchor {
		for base := range strings.SplitSeq(p.scope, " ") {
			if outer, ok := c.anchors[base+"#"+anchor]; ok {
				found = outer
				break
			}
		}
	}
	found.scope = enter(p.scope, found.base)
	return term{place: found}, true
}

var typeNames = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

// types keeps the shapes of the listed types, or the others.
func (c *schemas) types(list []*shape, p place, v any, not bool) []*shape {
	names, ok := v.([]any)
	if !ok {
		names = []any{v}
	}
	for _, name := range names {
		if text, _ := name.(string); !slices.Contains(typeNames, text) {
			c.fail(p, "type", "%v is no type", name)
		}
	}
	var out []*shape
	for _, s := range list {
		named := slices.Contains(names, any(string(s.kind)))
		if s.kind == isNumber && !named && slices.Contains(names, any("integer")) {
			s = s.clone()
			if not {
				s.broken = true
			} else {
				s.whole = true
			}
			named = !not
		}
		if named != not && !c.impossible(s) {
			out = append(out, s)
		}
	}
	return out
}

func (c *schemas) strings(p place, keyword string, v any) (names []string) {
	list, ok := v.([]any)
	for _, v := range list {
		name, isText := v.(string)
		ok = ok && isText
		names = append(names, name)
	}
	if !ok {
		c.fail(p, keyword, "want a list of strings")
	}
	return names
}
