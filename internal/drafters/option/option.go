// Package option reads the options of drafters, "key=value,key=value", into structs with tags.
package option

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Parse reads "key=value,key=value" into the struct that into points to. Fields whose key is absent
// are left alone. Fields of type int, float32, float64, bool and string take part if they have a tag
// `draft:"key"`; a tag `help:"..."` describes them. So do fields of embedded structs. See
// Check.
func Parse(text string, into any) error {
	options := optionsOf(reflect.ValueOf(into).Elem())
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		field, keys := reflect.Value{}, []string(nil)
		for _, o := range options {
			keys = append(keys, o.key)
			if o.key == key {
				field = o.value
			}
		}
		if len(options) == 0 {
			return fmt.Errorf("option %q: it has no options", key)
		}
		if !field.IsValid() {
			return fmt.Errorf("option %q: there is no such option: want some of %s", key, strings.Join(keys, ", "))
		}
		if !ok {
			return fmt.Errorf("option %q has no value: write %s=VALUE", key, key)
		}
		example := field.Interface()
		if err := set(field, value); err != nil {
			return fmt.Errorf("option %s=%q: want a value like %v", key, value, example)
		}
	}
	return nil
}

// Check returns an error if a number in options, a pointer to a struct as Parse fills it, is outside
// the bounds that its help gives: a help with "(1 to 16)" wants 1 to 16.
func Check(options any) error {
	for _, o := range optionsOf(reflect.ValueOf(options).Elem()) {
		bounds := boundsInHelp.FindStringSubmatch(o.help)
		if bounds == nil {
			continue
		}
		least, _ := strconv.ParseFloat(bounds[1], 64)
		most, _ := strconv.ParseFloat(bounds[2], 64)
		v := o.value
		if v.CanInt() {
			v = v.Convert(reflect.TypeFor[float64]())
		}
		if v.CanFloat() && !(v.Float() >= least && v.Float() <= most) {
			return fmt.Errorf("%s is %v: want %s to %s", o.key, o.value, bounds[1], bounds[2])
		}
	}
	return nil
}

var boundsInHelp = regexp.MustCompile(`\((\d+) to (\d+)\)`)

// option is a field that takes part.
type option struct {
	key, help string
	value     reflect.Value
}

func optionsOf(v reflect.Value) (list []option) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			list = append(list, optionsOf(v.Field(i))...)
		} else if key := f.Tag.Get("draft"); key != "" {
			list = append(list, option{key, f.Tag.Get("help"), v.Field(i)})
		}
	}
	return list
}

func set(field reflect.Value, value string) error {
	switch field.Kind() {
	case reflect.Int:
		n, err := strconv.Atoi(value)
		field.SetInt(int64(n))
		return err
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(value, 64)
		field.SetFloat(f)
		return err
	case reflect.Bool:
		b, err := strconv.ParseBool(value)
		field.SetBool(b)
		return err
	case reflect.String:
		field.SetString(value)
		return nil
	}
	return fmt.Errorf("draft: an option of type %s", field.Type())
}

// Option is an option of a family, for help texts.
type Option struct {
	Key     string
	Default any
	Help    string
}

// List returns the options of a struct, as Parse fills it, with their current values.
func List(options any) (list []Option) {
	if options == nil {
		return nil
	}
	for _, o := range optionsOf(reflect.ValueOf(options).Elem()) {
		list = append(list, Option{o.key, o.value.Interface(), o.help})
	}
	return list
}
