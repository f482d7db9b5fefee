package synth

import (
	"fmt"
	"slices"
	"strings"
)

// Shapes lists the named shapes, the tiny ones first.
func Shapes() []Shape { return slices.Clone(shapes) }

// Lookup finds a shape by its name, ignoring case.
func Lookup(name string) (Shape, error) {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
		names[i] = s.Name
	}
	return Shape{}, fmt.Errorf("synth: no shape is named %q: use one of %s", name, strings.Join(names, ", "))
}
