// Random models of named shapes.

package command

import (
	"strings"

	"github.com/grovellm/grove/internal/files/recode"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

func ShapeNames() []string {
	var names []string
	for _, s := range synth.Shapes() {
		names = append(names, s.Name)
	}
	return names
}

// ShapeAndType finds a shape and a type by their names.
func ShapeAndType(shape, typ string) (synth.Shape, tensor.Type, error) {
	s, err := synth.Lookup(shape)
	if err != nil {
		return s, 0, Usagef("no shape is named %q: use one of %s", shape, strings.Join(ShapeNames(), ", "))
	}
	t, err := tensor.ParseType(typ)
	if err != nil || recode.CheckWritable(t) != nil {
		return s, 0, Usagef("--type %q: want f32, f16, bf16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1, q4_0, iq4_nl or mxfp4", typ)
	}
	return s, t, nil
}
