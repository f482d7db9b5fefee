package train

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
)

// HeadFlags are the flags with which a command trains a head of a kind; what is not given is as in
// the kind's own recipe.
type HeadFlags interface {
	Help() string
	Folder() string // below the job's
	Train(ctx context.Context, j Job, name string) error
}

// SetFlags sets in a recipe what flags give, both pointers to structs: pointers that are not nil,
// lists that are not empty, and all that is neither. A flag goes to the recipe's field of its own
// name, or to that which its tag `recipe:"A.B"` names; `recipe:"-"` leaves it out.
func SetFlags(recipe, flags any) {
	to, from := reflect.ValueOf(recipe).Elem(), reflect.ValueOf(flags).Elem()
	for i := range from.NumField() {
		f, v := from.Type().Field(i), from.Field(i)
		name := cmp.Or(f.Tag.Get("recipe"), f.Name)
		field := to
		for part := range strings.SplitSeq(name, ".") {
			if field.IsValid() {
				field = field.FieldByName(part)
			}
		}
		switch {
		case name == "-" || v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.Slice && v.Len() == 0:
		case !field.IsValid():
			panic(fmt.Sprintf("train: a flag %s for a field %s that %v has not", f.Name, name, to.Type()))
		case v.Kind() == reflect.Pointer:
			field.Set(v.Elem())
		default:
			field.Set(v)
		}
	}
}

// SetFrom replaces the blocks that layers begin as, and reports whether others have taken their
// place: -1 alone is none.
func SetFrom(to *[]int, from []int) bool {
	switch {
	case len(from) == 1 && from[0] < 0:
		*to = nil
		return false
	case len(from) > 0:
		*to = from
		return true
	}
	return false
}
