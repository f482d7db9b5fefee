package serve

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// constraint is what an output must match: one of the fields is set.
type constraint struct {
	grammar, schema, regex string
	param                  string // the field that said so
}

// readConstraint reads what the output must match, in the fields of OpenAI, llama.cpp and vLLM.
func (c *call) readConstraint(o *object) {
	set := func(param string, k constraint) {
		if c.constraint.param != "" {
			o.fail(param, "%s is given as well: give one of them", c.constraint.param)
		}
		k.param = param
		c.constraint = k
	}
	if in := o.object("response_format"); in != nil {
		kind := ""
		in.read("type", &kind)
		given := in.object("json_schema")
		switch {
		case in.err != nil:
			o.err = in.err
		case kind == "text":
		case kind == "json_object" && in.has("schema"): // as llama.cpp has it
			set("response_format.schema", constraint{schema: string(in.fields["schema"])})
		case kind == "json_object":
			set("response_format", constraint{schema: anyObject})
		case kind == "json_schema" && given != nil && given.has("schema"):
			set("response_format.json_schema.schema", constraint{schema: string(given.fields["schema"])})
		case kind == "json_schema":
			o.fail("response_format.json_schema.schema", "it is missing")
		default:
			o.fail("response_format.type", "%q: want text, json_object or json_schema", kind)
		}
	}
	if in := o.object("structured_outputs"); in != nil {
		in.refuse("structural_tag", unlike)
		c.readStructure(in, map[string]string{"json": "json", "regex": "regex", "choice": "choice", "grammar": "grammar", "json_object": "json_object"}, set)
		o.err = firstOf(o.err, in.err)
	}
	c.readStructure(o, map[string]string{"grammar": "grammar", "guided_grammar": "grammar", "json_schema": "json", "guided_json": "json",
		"guided_regex": "regex", "guided_choice": "choice"}, set)
	c.request.Grammar = c.constraint.grammar
	c.request.JSONSchema = c.constraint.schema
	c.request.Regex = c.constraint.regex
}

// anyObject is the schema of json_object.
const anyObject = `{"type": "object"}`

// readStructure reads fields of the kinds given.
func (c *call) readStructure(o *object, kinds map[string]string, set func(string, constraint)) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		kind := kinds[name]
		if !o.has(name) {
			continue
		}
		text, isText := decode[string](o.fields[name])
		switch kind {
		case "json":
			if !isText {
				text = string(o.fields[name])
			}
			if text != "" && text != "{}" {
				set(o.path+name, constraint{schema: text})
			}
		case "json_object":
			if yes := false; o.read(name, &yes) && yes {
				set(o.path+name, constraint{schema: anyObject})
			}
		case "choice":
			list := o.listOfStrings(name)
			if len(list) == 0 {
				o.fail(name, "there are no strings: give at least one")
			}
			for i := range list {
				list[i] = regexp.QuoteMeta(list[i])
			}
			set(o.path+name, constraint{regex: "(?:" + strings.Join(list, "|") + ")"})
		default:
			o.read(name, &text)
			if text == "" {
				continue
			}
			if kind == "regex" {
				set(o.path+name, constraint{regex: text})
			} else {
				set(o.path+name, constraint{grammar: text})
			}
		}
	}
}

func firstOf(a, b *Error) *Error {
	if a != nil {
		return a
	}
	return b
}
