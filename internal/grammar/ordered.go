package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// object is a JSON object whose fields keep their order.
type object struct {
	names  []string
	values map[string]any
}

func (o *object) get(name string) (any, bool) {
	v, ok := o.values[name]
	return v, ok
}

// parseJSON reads a value: *object, []any, string, json.Number, bool or nil. Of fields with one name the last counts.
func parseJSON(source string) (any, error) {
	d := json.NewDecoder(strings.NewReader(source))
	d.UseNumber()
	v, err := readValue(d, 0)
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("not JSON: text follows the value")
	}
	return v, nil
}

func readValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil || depth > maxDepth {
		if err == nil {
			err = fmt.Errorf("nested more than %d deep", maxDepth)
		} else if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := readValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		o := &object{values: map[string]any{}}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			key := name.(string)
			if _, twice := o.values[key]; !twice {
				o.names = append(o.names, key)
			}
			o.values[key] = v
		}
		_, err := d.Token()
		return o, err
	}
	return t, nil
}

// quote is a text as JSON writes it.
func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // of a string it cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
