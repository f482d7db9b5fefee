package grammar

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Relaxed is the result of Relax.
type Relaxed struct {
	Schema string
	Left   []string // the places of the omitted parts
	Work   int      // the work it took, about 10 microseconds per unit
}

// MostWork is the most work that the schemas of a request may take together.
const MostWork = 1 << 18

// maxTries is the share of it that the parts of a schema may take. The remainder is for the whole.
const maxTries = MostWork / 4 * 3

// Relax turns a schema of a tool's arguments into one that can be enforced, by leaving out the
// parts that cannot be, each as small as possible. A schema that can be enforced is unchanged. If
// finding out takes too long, parts keep only their type. It stops when the work exceeds most: a
// Schema whose Work is more must not be used. If ctx ends, it returns an error.
func Relax(ctx context.Context, parameters string, most int) (Relaxed, error) {
	if parameters == "" {
		return Relaxed{}, nil
	}
	if err := checkSource(parameters); err != nil {
		return Relaxed{}, err
	}
	root, err := parseJSON(parameters)
	if err != nil {
		return Relaxed{}, err
	}
	r := relaxer{ctx: ctx, most: most}
	if r.holds(parameters, most, anObject) {
		return Relaxed{parameters, nil, r.work}, nil
	}
	if o, ok := root.(*object); ok {
		r.root = o
	}
	root = r.relax(root, "#", 0)
	if o, ok := root.(*object); ok && o.values["type"] == nil { // the remaining schema need not state it
		o.names, o.values = append(o.names, "type"), withValue(o.values, "type", "object")
	}
	text := string(appendJSON(nil, root))
	if !r.holds(text, most, anObject) {
		text, r.left = `{"type": "object"}`, append(r.left, "#")
	}
	return Relaxed{text, r.left, r.work}, context.Cause(ctx)
}

type relaxer struct {
	ctx        context.Context
	root       *object
	left       []string
	work, most int
}

// holds reports whether a schema can be enforced, as far as this can be determined before all work exceeds most.
func (r *relaxer) holds(text string, most int, others ...term) bool {
	if r.ctx.Err() != nil || r.work > most {
		return false
	}
	c := newSchemas()
	c.most = min(maxApplied, most-r.work)
	c.several = true
	rule, err := c.read(text, others...)
	if err == nil {
		_, err = c.g.compile(rule)
	}
	r.work += 1 + c.work + 2*len(c.g.rules) + (c.g.nodes+len(text))/16
	return err == nil && r.work <= most
}

// spent reports whether no further parts may be tried.
func (r *relaxer) spent() bool { return r.ctx.Err() != nil || r.work > min(maxTries, r.most) }

// definitions are the keywords under which a document keeps schemas for use by others.
var definitions = []string{"$defs", "definitions"}

// holdsPart reports whether a part of the document can be enforced by itself.
func (r *relaxer) holdsPart(v any) bool {
	o, ok := v.(*object)
	if !ok {
		return true
	}
	alone := &object{slices.Clone(o.names), withValue(o.values, "", nil)}
	for _, name := range definitions {
		if r.root != nil && r.root.values[name] != nil && alone.values[name] == nil {
			alone.names = append(alone.names, name)
			alone.values[name] = r.root.values[name]
		}
	}
	return r.holds(string(appendJSON(nil, alone)), min(maxTries, r.most))
}

// mostPlace limits the bytes of a place that is reported.
const mostPlace = 256

// below returns the place of a part within a place.
func below(at, part string) string {
	if len(at)+len(part) >= mostPlace {
		return strings.TrimSuffix(at, "/...") + "/..."
	}
	return at + "/" + part
}

// withValue returns a copy of an object's values with one more.
func withValue(values map[string]any, name string, v any) map[string]any {
	out := make(map[string]any, len(values)+1)
	for k, old := range values {
		out[k] = old
	}
	if name != "" {
		out[name] = v
	}
	return out
}

// relax turns a schema into one that can be enforced: by relaxing the schemas within it, and if
// that is not enough, by leaving out keywords, the first that helps.
func (r *relaxer) relax(v any, at string, depth int) any {
	o, ok := v.(*object)
	if !ok || depth > maxDepth || r.holdsPart(o) {
		return v
	}
	if r.spent() {
		r.left = append(r.left, at)
		return o.typeAlone()
	}
	out := &object{slices.Clone(o.names), withValue(o.values, "", nil)}
	for _, name := range o.names {
		switch kid := o.values[name].(type) {
		case *object:
			switch name {
			case "properties", "$defs", "definitions":
				all := &object{slices.Clone(kid.names), withValue(kid.values, "", nil)}
				for _, property := range kid.names {
					place := below(below(at, name), escapePointer.Replace(property))
					all.values[property] = r.relax(kid.values[property], place, depth+1)
				}
				out.values[name] = all
			case "items", "additionalProperties":
				out.values[name] = r.relax(kid, below(at, name), depth+1)
			}
		case []any:
			if name == "anyOf" || name == "oneOf" || name == "allOf" || name == "prefixItems" {
				list := slices.Clone(kid)
				for i := range list {
					list[i] = r.relax(list[i], below(below(at, name), strconv.Itoa(i)), depth+1)
				}
				out.values[name] = list
			}
		}
		if depth == 0 && slices.Contains(definitions, name) {
			r.root = &object{r.root.names, withValue(r.root.values, name, out.values[name])}
		}
	}
	if r.spent() || r.holdsPart(out) {
		return out
	}
	for _, name := range slices.Backward(out.names) { // without one keyword
		if !slices.Contains(removable, name) || r.spent() {
			continue
		}
		if one := out.without(name); r.holdsPart(one) {
			r.left = append(r.left, below(at, name))
			return one
		}
	}
	kept := &object{nil, map[string]any{}}
	for _, name := range []string{"type", "properties", "items", "required", "enum", "$ref", "$defs", "definitions"} {
		if out.values[name] == nil {
			continue
		}
		if more := (&object{append(slices.Clone(kept.names), name),
			withValue(kept.values, name, out.values[name])}); r.holdsPart(more) {
			kept = more
		}
	}
	r.left = append(r.left, at)
	if r.spent() {
		return o.typeAlone()
	}
	return kept
}

// typeAlone returns a schema with only its type, which may be a list of types.
func (o *object) typeAlone() *object {
	kept := &object{nil, map[string]any{}}
	list, ok := o.values["type"].([]any)
	if !ok {
		list = []any{o.values["type"]}
	}
	for _, name := range list {
		if text, _ := name.(string); !slices.Contains(typeNames, text) {
			return kept
		}
	}
	kept.names, kept.values["type"] = []string{"type"}, o.values["type"]
	return kept
}

// removable are the keywords, except type, that restrict values. Leaving out any other changes nothing.
var removable = strings.Fields("$ref $dynamicRef $recursiveRef $id $anchor $dynamicAnchor const enum allOf anyOf oneOf" +
	" not if then else minimum exclusiveMinimum maximum exclusiveMaximum multipleOf minLength minItems minProperties" +
	" maxLength maxItems maxProperties pattern format uniqueItems contains minContains maxContains prefixItems items" +
	" additionalItems required propertyNames properties patternProperties additionalProperties dependentRequired" +
	" dependentSchemas dependencies unevaluatedProperties unevaluatedItems")

func (o *object) without(name string) *object {
	out := &object{nil, withValue(o.values, "", nil)}
	delete(out.values, name)
	for _, n := range o.names {
		if n != name {
			out.names = append(out.names, n)
		}
	}
	return out
}

// appendJSON appends a value that parseJSON has read.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		dst = append(dst, '{')
		for i, name := range v.names {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(append(dst, quote(name)...), ": "...)
			dst = appendJSON(dst, v.values[name])
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendJSON(dst, item)
		}
		return append(dst, ']')
	case string:
		return append(dst, quote(v)...)
	}
	text, _ := json.Marshal(v)
	return append(dst, bytes.TrimSpace(text)...)
}
