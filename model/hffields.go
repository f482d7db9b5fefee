// Fields of config.json that grove does not obey.

package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/grovellm/grove/gguf"
)

// checkFields refuses a config.json with a field that changes what the model computes and that
// grove does not obey.
func checkFields(fields map[string]any) error {
	if err := checkObject("", fields, folderRules, true); err != nil {
		return err
	}
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		if object, ok := fields[name].(map[string]any); ok {
			if err := checkObject(name+".", object, ropeRules, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkObject applies rules to the fields of an object. It allows fields of no rule if others is
// true.
func checkObject(prefix string, fields map[string]any, r gguf.Rules, others bool) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		neutral, known := r.Neutral[name]
		switch v := fields[name]; {
		case known && !isNeutral(v, neutral):
			return fmt.Errorf("field %q is %v, and grove does not compute models with that value: "+
				"run the model with a program that does", prefix+name, v)
		case !known && !others && !slices.Contains(r.Obeyed, name) && !slices.Contains(r.Ignored, name):
			return fmt.Errorf("field %q: grove does not know the field, and it may change what the model computes: "+
				"remove it, if it changes no result", prefix+name)
		}
	}
	return nil
}

// isNeutral reports whether a value of JSON is null, empty, or in a list.
func isNeutral(v any, neutral []any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	case float64:
		return slices.ContainsFunc(neutral, func(n any) bool { i, ok := n.(int); return ok && float64(i) == v })
	}
	return slices.Contains(neutral, v)
}
