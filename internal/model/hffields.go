// Fields of config.json that grove does not obey.

package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// checkFields refuses a config.json with a field that changes what the model computes but that
// grove does not obey.
func checkFields(a *architecture, fields map[string]any) error {
	rules := ggufkeys.Rules{Neutral: maps.Clone(folderRules.Neutral)}
	maps.DeleteFunc(rules.Neutral, func(name string, _ []any) bool { return a.obeys(name) })
	if err := checkObject("", fields, rules, true); err != nil {
		return err
	}
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		object, ok := fields[name].(map[string]any)
		if !ok {
			continue
		}
		if err := checkRope(a, name+".", object); err != nil {
			return err
		}
	}
	return nil
}

// temperField is the field of the rotation that makes queries grow with their position.
const temperField = "llama_4_scaling_beta"

// alphaField is the field of the rotation that increases its base.
const alphaField = "alpha"

// checkRope checks an object of the rotation or, where layers with a window may have a different
// one, one object for each kind of layer.
func checkRope(a *architecture, prefix string, object map[string]any) error {
	for _, field := range []string{temperField, alphaField} {
		if a.obeys(field) {
			object = maps.Clone(object)
			delete(object, field)
		}
	}
	if a.obeys("mrope_section") { // in texts, all sections have the same position
		object = maps.Clone(object)
		delete(object, "mrope_section")
		delete(object, "mrope_interleaved")
	}
	if !(a.obeys("rope_local_base_freq") || a.ownRope && !a.latent) || object["full_attention"] == nil {
		return checkObject(prefix, object, ropeRules, false)
	}
	for _, kind := range slices.Sorted(maps.Keys(object)) {
		o, ok := object[kind].(map[string]any)
		if !ok || kind != "full_attention" && kind != "sliding_attention" {
			return fmt.Errorf("field %q: want only the objects full_attention and sliding_attention", prefix+kind)
		}
		if err := checkObject(prefix+kind+".", o, ropeRules, false); err != nil {
			return err
		}
	}
	return nil
}

// checkObject applies rules to the fields of an object. It allows fields without a rule if others
// is true.
func checkObject(prefix string, fields map[string]any, r ggufkeys.Rules, others bool) error {
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

// isNeutral reports whether a JSON value is null, empty, or in a list.
func isNeutral(v any, neutral []any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	case float64:
		if i := int(v); float64(i) == v {
			return slices.Contains(neutral, any(i))
		}
	}
	return slices.Contains(neutral, v)
}
