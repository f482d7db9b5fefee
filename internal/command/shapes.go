// Random models of named shapes.

package command

import (
	"fmt"
	"strings"
	"text/tabwriter"

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

func ListShapes(p *Program) error {
	if p.JSON {
		type entry struct {
			Name       string `json:"name"`
			Arch       string `json:"architecture"`
			Parameters int64  `json:"parameters"`
			Vocab      int    `json:"vocab"`
			Hidden     int    `json:"hidden"`
			Layers     int    `json:"layers"`
			Context    int    `json:"context"`
		}
		list := []entry{}
		for _, s := range synth.Shapes() {
			list = append(list, entry{s.Name, s.Arch, s.Parameters(), s.Vocab, s.Hidden, s.Layers, s.Context})
		}
		return p.PrintJSON(list)
	}
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "shape\tarchitecture\tparameters\tvocabulary\thidden\tlayers\tcontext")
	for _, s := range synth.Shapes() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\n", s.Name, s.Arch, Count(s.Parameters()), s.Vocab,
			s.Hidden, s.Layers, s.Context)
	}
	return t.Flush()
}
