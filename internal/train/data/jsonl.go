package data

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// placeholder is a field of a template, or a control token's name.
var placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.]*)\}|<\|[A-Za-z0-9_]+\|>`)

// piece is a part of a template: text, a control token's name, or a field.
type piece struct {
	Part
	field string
}

func parseTemplate(template string) ([]piece, error) {
	var pieces []piece
	fields, at := 0, 0
	add := func(text string) {
		if text != "" {
			pieces = append(pieces, piece{Part: Part{Text: text}})
		}
	}
	for _, m := range placeholder.FindAllStringSubmatchIndex(template, -1) {
		add(template[at:m[0]])
		at = m[1]
		if m[2] < 0 {
			pieces = append(pieces, piece{Part: Part{Text: template[m[0]:m[1]], Control: true}})
			continue
		}
		fields++
		pieces = append(pieces, piece{field: template[m[2]:m[3]]})
	}
	add(template[at:])
	if fields == 0 {
		return nil, fmt.Errorf("template %q names no field: write one as {name}", template)
	}
	return pieces, nil
}

// fill makes the document of one object.
func fill(pieces []piece, object map[string]any) ([]Part, error) {
	var parts []Part
	for _, p := range pieces {
		part := p.Part
		if p.field != "" {
			text, err := field(object, p.field)
			if err != nil {
				return nil, err
			}
			part.Text = text
		}
		if n := len(parts); n > 0 && !part.Control && !parts[n-1].Control {
			parts[n-1].Text += part.Text
		} else {
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// field looks up a string; a.b is field b of object a.
func field(object map[string]any, path string) (string, error) {
	names := strings.Split(path, ".")
	for i, name := range names {
		v, ok := object[name]
		if !ok {
			have := slices.Sorted(maps.Keys(object))
			for j := range have {
				have[j] = fmt.Sprintf("%.40q", have[j])
			}
			return "", fmt.Errorf("no field %q: the object has %s; name one of them in the template",
				strings.Join(names[:i+1], "."), strings.Join(have[:min(len(have), 20)], ", "))
		}
		if i == len(names)-1 {
			if text, ok := v.(string); ok {
				return text, nil
			}
			return "", fmt.Errorf("field %q is %s, want a string", path, kindOf(v))
		}
		object, ok = v.(map[string]any)
		if !ok {
			return "", fmt.Errorf("field %q is %s, want an object", strings.Join(names[:i+1], "."), kindOf(v))
		}
	}
	return "", nil
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}

// readJSONL reads one document per line. Empty lines are skipped.
func readJSONL(path, template string) ([]Document, error) {
	pieces, err := parseTemplate(template)
	if err != nil {
		return nil, err
	}
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	var docs []Document
	line := 0
	for l := range bytes.Lines(bytes.TrimPrefix(b, bom)) {
		line++
		where := fmt.Sprintf("%s:%d", path, line)
		if len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		if err := checkLine(l, maxJSONLine); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		var object map[string]any
		if err := json.Unmarshal(l, &object); err != nil {
			return nil, fmt.Errorf("%s: want one JSON object on each line: %w", where, err)
		}
		parts, err := fill(pieces, object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		docs = append(docs, Document{Name: where, Parts: parts})
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errNoText)
	}
	return docs, nil
}
