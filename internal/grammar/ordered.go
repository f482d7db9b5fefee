package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
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

// parseJSON reads a value: *object, []any, string, json.Number, bool or nil. Of fields with one name, the last counts.
func parseJSON(source string) (any, error) {
	d := ordered{Decoder: json.NewDecoder(strings.NewReader(source))}
	d.UseNumber()
	v, err := d.read(0, 0)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("not JSON: it ends too early")
	case err != nil:
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("not JSON: text follows the value")
	}
	return v, nil
}

// Schemas are distinguished by their places. So places are limited: at most maxPath bytes of names
// lead to a value, and all values of $id together have at most maxIDs.
const maxPath, maxIDs = 2048, 1 << 14

// ordered is a decoder of such values.
type ordered struct {
	*json.Decoder
	ids int // bytes of $id so far
}

// read reads a value inside depth other values; names of path bytes lead to it.
func (d *ordered) read(depth, path int) (any, error) {
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
			v, err := d.read(depth+1, path)
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
			key := name.(string)
			if path+len(key) > maxPath {
				return nil, fmt.Errorf("more than %d bytes of names lead to a value: shorten them", maxPath)
			}
			v, err := d.read(depth+1, path+len(key))
			if err != nil {
				return nil, err
			}
			if id, ok := v.(string); ok && key == "$id" {
				d.ids += len(id)
			}
			if d.ids > maxIDs {
				return nil, fmt.Errorf("its $id have more than %d bytes together: shorten them", maxIDs)
			}
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

// quote returns a text in JSON.
func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // cannot fail for a string
	return strings.TrimSuffix(b.String(), "\n")
}
