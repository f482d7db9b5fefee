package train

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/grovellm/grove/internal/model"
)

// HeadFlags are the flags with which a command trains a head of a kind; what is not given is as in
// the kind's own recipe.
type HeadFlags interface {
	Help() string
	Folder() string                                 // below the job's
	Recipe(target *model.Model) (HeadRecipe, error) // that the flags describe
}

// CheckHead refuses flags and targets before there is any text.
func (j *Job) CheckHead(f HeadFlags) error {
	r, err := f.Recipe(j.Target)
	if err != nil {
		return err
	}
	return cmp.Or(j.CheckFlags(r, f), r.Prepare(j))
}

// HelpOnText is the part of the help of a command that trains a head which says what it learns from.
const HelpOnText = `What is learned is what the model says: in conversations that it makes up by itself, as answers to --prompts, or
after passages of --text; --teacher asks a server of the same model for it. An interrupted command continues when it
is given again, and ends in the same weights. Each folder holds one recipe: give another recipe another --name.`

// TextFlags are the flags of all kinds of heads.
type TextFlags struct {
	TrainOn *string `recipe:"Text" needs:"Text!=answers" enum:"generated,corpus" help:"Learn from what the target generates after passages of the text, or from the text as it is." placeholder:"generated|corpus" group:"Training"`
	Only    *string `needs:"Text!=answers" help:"Train on this source of the text only, or on what the target generates from it." placeholder:"SOURCE" group:"Training"`
	GreedyFlag
	Steps *int    `help:"Steps of the optimiser." placeholder:"N" group:"Training"`
	Rows  *int    `help:"Texts of a step, a multiple of 4." placeholder:"N" group:"Training"`
	Seed  *uint64 `help:"Seed of first weights, and of the order of texts and positions." placeholder:"N" group:"Training"`
}

// GreedyFlag is the flag of all that learns from text that a model generates.
type GreedyFlag struct {
	Greedy *float64 `recipe:"Short.Greedy,Long.Greedy" needs:"Text=generated" help:"Share of the texts that continue passages which is generated at temperature 0; the others are sampled at temperature 1." placeholder:"S" group:"Training"`
}

// LayerFlags are the flags of heads that have layers of their own shape.
type LayerFlags struct {
	FFN *int `name:"ffn" help:"Width of the MLPs, a multiple of 32." placeholder:"N" group:"Shape"`
	AttentionFlags
}

// AttentionFlags are those of a layer's attention.
type AttentionFlags struct {
	Heads    *int     `help:"Attention heads." placeholder:"N" group:"Shape"`
	KVHeads  *int     `name:"kv-heads" help:"Key/value heads." placeholder:"N" group:"Shape"`
	HeadDim  *int     `name:"head-dim" help:"Dimensions of an attention head." placeholder:"N" group:"Shape"`
	RopeBase *float64 `help:"Base of the rotary position encoding." placeholder:"B" group:"Shape"`
}

// SetFlags sets in a recipe what flags give, both pointers to structs: pointers that are not nil,
// lists that are not empty, and all that is neither. A flag goes to the recipe's field of its own
// name, or to those which its tag `recipe:"A.B,C"` names; `recipe:"-"` leaves it out. Those of an
// embedded struct are as the struct's that embeds it.
func SetFlags(recipe, flags any) {
	to, from := reflect.ValueOf(recipe).Elem(), reflect.ValueOf(flags).Elem()
	for i := range from.NumField() {
		f, v := from.Type().Field(i), from.Field(i)
		if f.Anonymous && f.Tag.Get("recipe") != "-" {
			SetFlags(recipe, v.Addr().Interface())
			continue
		}
		if f.Tag.Get("recipe") == "-" || v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.Slice && v.Len() == 0 {
			continue
		}
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		for name := range strings.SplitSeq(cmp.Or(f.Tag.Get("recipe"), f.Name), ",") {
			fieldOf(to, name).Set(v)
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
