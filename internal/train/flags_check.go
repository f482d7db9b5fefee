package train

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// CheckFlags refuses given flags that have no effect in a recipe that SetFlags made from them. A
// flag's tag `needs:"Loss=kl|reverse-kl"` names a field of the recipe and the values with which the
// flag is read; "!=" gives values with which it is not. Conditions are separated by commas, and
// those of an embedded struct apply to its flags. If a job learns from answers to prompts, the
// value of Text is "answers".
func (j *Job) CheckFlags(recipe, flags any) error {
	to := reflect.ValueOf(recipe).Elem()
	list := flagsOf(reflect.ValueOf(flags).Elem())
	for _, f := range list {
		for need := range strings.SplitSeq(f.needs, ",") {
			name, values, not := strings.Cut(need, "!=")
			if !not {
				name, values, _ = strings.Cut(need, "=")
			}
			if need == "" || f.zero {
				continue
			}
			value := fmt.Sprint(fieldOf(to, name))
			by := "a recipe whose " + name + " is"
			for _, g := range list {
				if g.recipe == name {
					by = "--" + g.name
				}
			}
			if name == "Text" && j.Answers != nil {
				by, value = "--prompts, whose text is", "answers"
			}
			if slices.Contains(strings.Split(values, "|"), value) == not {
				return fmt.Errorf("--%s changes nothing with %s %s: leave it out", f.name, by, value)
			}
		}
	}
	return nil
}

// flag is a field of a struct of flags.
type flag struct {
	name, recipe, needs string
	zero                bool // it is not given
}

// flagsOf lists the flags of a struct and of those that it embeds.
func flagsOf(from reflect.Value) (list []flag) {
	for i := range from.NumField() {
		f, v := from.Type().Field(i), from.Field(i)
		if f.Anonymous && f.Tag.Get("recipe") == "-" {
			continue
		}
		if f.Anonymous {
			for _, g := range flagsOf(v) {
				g.needs = cmp.Or(g.needs, f.Tag.Get("needs"))
				list = append(list, g)
			}
			continue
		}
		list = append(list, flag{
			name: cmp.Or(f.Tag.Get("name"), dashed(f.Name)), recipe: cmp.Or(f.Tag.Get("recipe"), f.Name),
			needs: f.Tag.Get("needs"), zero: v.IsZero(),
		})
	}
	return list
}

// dashed returns a field's name on the command line: TestSteps is test-steps.
func dashed(name string) string {
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// fieldOf returns the field of a recipe that "A.B" names.
func fieldOf(recipe reflect.Value, name string) reflect.Value {
	field := recipe
	for part := range strings.SplitSeq(name, ".") {
		if field.IsValid() {
			field = field.FieldByName(part)
		}
	}
	if !field.IsValid() {
		panic(fmt.Sprintf("train: a flag for a field %s that %v has not", name, recipe.Type()))
	}
	return field
}
