package serve

import (
	"encoding/json"
	"regexp"
	"strings"
)

// constraint is what an output must match. Exactly one of the fields is set.
type constraint struct {
	grammar, schema, regex string
	param                  string // the field that it came from
}

// constraints are the fields of OpenAI, llama.cpp and vLLM that say what the output must match.
type constraints struct {
	ResponseFormat    field[responseFormat]    `json:"response_format"`
	StructuredOutputs field[structuredOutputs] `json:"structured_outputs"`
	Grammar           field[string]            `json:"grammar"`
	GuidedChoice      field[[]string]          `json:"guided_choice"`
	GuidedGrammar     field[string]            `json:"guided_grammar"`
	GuidedJSON        field[schema]            `json:"guided_json"`
	GuidedRegex       field[string]            `json:"guided_regex"`
	JSONSchema        field[schema]            `json:"json_schema"`

	format constraint // from a protocol's own field
}

// responseFormat is OpenAI's. As in llama.cpp, json_object and json_schema may have a schema of their own.
type responseFormat struct {
	Type       field[string]          `json:"type"`
	Schema     field[json.RawMessage] `json:"schema"`
	JSONSchema struct {
		Schema field[json.RawMessage] `json:"schema"`
	} `json:"json_schema"`
}

// structuredOutputs is vLLM's.
type structuredOutputs struct {
	JSON          field[schema]   `json:"json"`
	Regex         field[string]   `json:"regex"`
	Choice        field[[]string] `json:"choice"`
	Grammar       field[string]   `json:"grammar"`
	JSONObject    field[bool]     `json:"json_object"`
	StructuralTag refused         `json:"structural_tag"`
}

// schema is a JSON schema, or a string that holds one. An empty schema constrains nothing.
type schema string

func (s *schema) readJSON(_ *decoder, _ string, raw json.RawMessage) error {
	text, isText := decode[string](raw)
	if !isText {
		text = string(raw)
	}
	*s = schema(text)
	return nil
}

// anyObject is the schema of json_object.
const anyObject = `{"type": "object"}`

// constraint returns what the output must match. At most one field may say it.
func (o *constraints) constraint() (constraint, error) {
	list := []constraint{o.format}
	if o.ResponseFormat.given {
		c, err := o.ResponseFormat.value.constraint(o.ResponseFormat.path)
		if err != nil {
			return constraint{}, err
		}
		list = append(list, c)
	}
	in := &o.StructuredOutputs.value
	if in.JSONObject.value {
		list = append(list, constraint{schema: anyObject, param: in.JSONObject.path})
	}
	for _, f := range []*field[[]string]{&in.Choice, &o.GuidedChoice} {
		c, err := choiceOf(f)
		if err != nil {
			return constraint{}, err
		}
		list = append(list, c)
	}
	for _, f := range []*field[string]{&in.Grammar, &o.Grammar, &o.GuidedGrammar} {
		list = append(list, constraint{grammar: f.value, param: f.path})
	}
	for _, f := range []*field[string]{&in.Regex, &o.GuidedRegex} {
		list = append(list, constraint{regex: f.value, param: f.path})
	}
	for _, f := range []*field[schema]{&in.JSON, &o.GuidedJSON, &o.JSONSchema} {
		list = append(list, constraint{schema: string(f.value), param: f.path})
	}
	found := constraint{}
	for _, c := range list {
		switch {
		case c.grammar+c.schema+c.regex == "":
		case found.param != "":
			return found, fieldError(c.param, "%s is set too: give only one of them", found.param)
		default:
			found = c
		}
	}
	return found, nil
}

// constraint returns the constraint that a format, whose field is at path, asks for.
func (f *responseFormat) constraint(path string) (constraint, error) {
	given := &f.JSONSchema.Schema
	if !given.given && f.Schema.given {
		given = &f.Schema
	}
	switch f.Type.value {
	case "text":
		return constraint{}, nil
	case "json_object":
		if f.Schema.given {
			return constraint{schema: string(f.Schema.value), param: f.Schema.path}, nil
		}
		return constraint{schema: anyObject, param: path}, nil
	case "json_schema":
		if !given.given {
			return constraint{}, fieldError(path+".json_schema.schema", "the field is required")
		}
		return constraint{schema: string(given.value), param: given.path}, nil
	}
	return constraint{}, fieldError(path+".type", "%q: want text, json_object or json_schema", f.Type.value)
}

// choiceOf returns a constraint that matches one of a field's texts.
func choiceOf(f *field[[]string]) (constraint, error) {
	if !f.given {
		return constraint{}, nil
	}
	if len(f.value) == 0 {
		return constraint{}, f.fail("the list is empty: give at least one string")
	}
	quoted := make([]string, len(f.value))
	for i, text := range f.value {
		quoted[i] = regexp.QuoteMeta(text)
	}
	return constraint{regex: "(?:" + strings.Join(quoted, "|") + ")", param: f.path}, nil
}
