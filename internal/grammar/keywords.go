package grammar

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// accept narrows shapes to the values that a schema accepts. Unknown keywords impose nothing.
func (c *schemas) accept(list []*shape, p place, o *object) []*shape {
	for _, keyword := range []string{"unevaluatedProperties", "unevaluatedItems"} {
		v, ok := o.get(keyword)
		if !ok || v == true {
			continue
		}
		rest := &object{o.names, map[string]any{}} // the schema without the keyword, to which the rest applies
		for name, v := range o.values {
			if name != keyword {
				rest.values[name] = v
			}
		}
		k := isObject
		if keyword == "unevaluatedItems" {
			k = isArray
		}
		others := term{place: p.sub(v, keyword)}
		within := c.narrow(c.accept(universe(), p, rest), func(s *shape) {
			s.parts = append(s.parts, part{others: &others, seen: true})
		}, k)
		var out []*shape
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
		var out []*shape
		property := ""
		if d, ok := o.values["discriminator"].(*object); ok { // OpenAPI's
			property, ok = d.values["propertyName"].(string)
			if ok { // it determines which schema applies
				list = c.narrow(list, func(s *shape) { s.required = append(s.required, property) }, isObject)
			}
		}
		all := c.terms(p, name, v)
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
		c.checkDenial(p, name, list, out)
		return out
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
					return c.apply(list, here(v, name, property))
				})
			if c.crowded(p, name, len(list)) {
				return nil
			}
		}
	}
	return list
}

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
