package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Relax returns a schema of a tool's arguments that can be held, and what was left out of the one
// given: the parts that cannot be held, each as narrow as can be. A schema that can be held stays
// as it is.
func Relax(parameters string) (relaxed string, left []string, err error) {
	if parameters == "" {
		return "", nil, nil
	}
	if err := checkSource(parameters); err != nil {
		return "", nil, err
	}
	root, err := parseJSON(parameters)
	if err != nil {
		return "", nil, err
	}
	if holds(parameters) == nil {
		return parameters, nil, nil
	}
	r := relaxer{}
	if o, ok := root.(*object); ok {
		r.root = o
	}
	root = r.relax(root, "#", 0)
	if o, ok := root.(*object); ok && o.values["type"] == nil { // what is left of it need not say so
		o.names, o.values = append(o.names, "type"), withValue(o.values, "type", "object")
	}
	text := string(appendJSON(nil, root))
	if holds(text) != nil {
		return `{"type": "object"}`, append(r.left, "#"), nil
	}
	return text, r.left, nil
}

// holds says why a schema of arguments cannot be held; nil where it can.
func holds(parameters string) error {
	c := newSchemas()
	rule, err := c.read(parameters, anObject)
	if err == nil {
		_, err = c.g.compile(rule)
	}
	return err
}

type relaxer struct {
	root *object
	left []string
}

// definitions are the keywords under which a document has schemas for others.
var definitions = []string{"$defs", "definitions"}

// holdsPart reports whether a part of the document can be held by itself.
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
	c := newSchemas()
	rule, err := c.read(string(appendJSON(nil, alone)))
	if err == nil {
		_, err = c.g.compile(rule)
	}
	return err == nil
}

// withValue is a copy of an object's values with one more.
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

// relax makes a schema one that can be held: by relaxing the schemas within it, and where that is
// not enough by leaving out its keywords, the first of those that help.
func (r *relaxer) relax(v any, at string, depth int) any {
	o, ok := v.(*object)
	if !ok || depth > maxDepth || r.holdsPart(o) {
		return v
	}
	out := &object{slices.Clone(o.names), withValue(o.values, "", nil)}
	for _, name := range o.names {
		switch kid := o.values[name].(type) {
		case *object:
			switch name {
			case "properties", "$defs", "definitions":
				all := &object{slices.Clone(kid.names), withValue(kid.values, "", nil)}
				for _, property := range kid.names {
					all.values[property] = r.relax(kid.values[property], at+"/"+name+"/"+escapePointer.Replace(property), depth+1)
				}
				out.values[name] = all
			case "items", "additionalProperties":
				out.values[name] = r.relax(kid, at+"/"+name, depth+1)
			}
		case []any:
			if name == "anyOf" || name == "oneOf" || name == "allOf" || name == "prefixItems" {
				list := slices.Clone(kid)
				for i := range list {
					list[i] = r.relax(list[i], fmt.Sprintf("%s/%s/%d", at, name, i), depth+1)
				}
				out.values[name] = list
			}
		}
		if depth == 0 && slices.Contains(definitions, name) {
			r.root = &object{r.root.names, withValue(r.root.values, name, out.values[name])}
		}
	}
	if r.holdsPart(out) {
		return out
	}
	for _, name := range slices.Backward(out.names) { // one keyword less
		if one := out.without(name); name != "type" && r.holdsPart(one) {
			r.left = append(r.left, at+"/"+name)
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
	return kept
}

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
