package traintest_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/draft"
	"github.com/grovellm/grove/internal/train/eagle"
	"github.com/grovellm/grove/internal/train/falcon"
	"github.com/grovellm/grove/internal/train/jet"
	"github.com/grovellm/grove/internal/train/medusa"
	"github.com/grovellm/grove/internal/train/mtp"
	"github.com/grovellm/grove/internal/train/peagle"
	"github.com/grovellm/grove/internal/train/specblock"
	"github.com/grovellm/grove/internal/train/traintest"
)

// given are flags by their fields' names; nil means that a flag is not given.
type given map[string]any

// trained is a command that trains a head: flags with which a head of the tiny target is trained
// quickly, the same flags with other values, and flags together with which those may have no meaning.
type trained struct {
	flags  func() train.HeadFlags
	tiny   given
	others given
	with   []given
	change func(r train.HeadRecipe) // changes the recipe for the tiny target; may be nil
}

// shorten gives a recipe the tiny job's texts.
func shorten(t *train.HeadText) {
	short := traintest.HeadText()
	short.Text = t.Text
	short.Only = t.Only
	short.Rows = t.Rows
	short.Repeats = t.Repeats
	short.MicroRows = 1 // works for any number of rows
	short.Short.Greedy, short.Long.Greedy = t.Short.Greedy, t.Long.Greedy
	*t = short
}

// tinyBlock is the shape of a block head for the tiny target.
var tinyBlock = given{"From": []int{-1}, "Layers": 1, "Anchors": 4, "Block": 4, "FFN": 64, "Heads": 2,
	"KVHeads": 1, "HeadDim": 16,
	"Taps": []int{1, 2}}

var allTrained = map[string]trained{
	"jet": {
		func() train.HeadFlags { return &jet.Flags{Head: "causal"} },
		tinyBlock,
		given{"Loss": "ce", "Softening": float32(2), "Gamma": 1., "Anchors": 3,
			"ShortTime": 0., "Block": 3, "Layers": 2, "FFN": 32,
			"RopeBase": 100., "Taps": []int{1}},
		[]given{{"Optimizer": "adamw"}, {"Loss": "ce"}, {"TrainOn": "corpus"}},
		func(r train.HeadRecipe) { r.(*jet.Recipe).ShortBlock = 2 },
	},
	"dspark": {
		func() train.HeadFlags { return new(jet.DSparkFlags) },
		tinyBlock,
		given{"Hard": float32(.5), "Confidence": float32(.1), "Markov": "gated", "Rank": 24, "Gamma": 1., "Anchors": 3,
			"ShortTime": 0., "Block": 3, "Layers": 2, "FFN": 32, "Taps": []int{1}},
		[]given{{"Confidence": float32(0)}},
		func(r train.HeadRecipe) { r.(*jet.CorrectedRecipe).ShortBlock = 2 },
	},
	"dflash2": {
		func() train.HeadFlags { return new(jet.DFlash2Flags) },
		tinyBlock,
		given{"Loss": "ce", "Softening": float32(2), "Selection": float32(.1), "Rank": 24, "Kernel": 3, "Group": 8, "Top": 5,
			"Gamma": 1., "Anchors": 3,
			"Block": 3, "RopeBase": 100.},
		nil,
		func(r train.HeadRecipe) { r.(*jet.CorrectedRecipe).ShortBlock = 2 },
	},
	"eagle": {
		func() train.HeadFlags { return new(eagle.Flags) },
		given{"From": []int{-1}, "Places": 6, "Later": 3, "TestSteps": 2, "FFN": 64, "Heads": 2, "KVHeads": 1,
			"HeadDim": 16, "Taps": []int{1, 2}},
		given{"TestSteps": 3, "Decay": .2, "Places": 5, "Later": 2, "FFN": 32, "RopeBase": 100.,
			"Taps": []int{0, 1}, "DraftVocab": 64},
		[]given{{"TestSteps": 1, "Later": nil}},
		nil,
	},
	"mtp": {
		func() train.HeadFlags { return new(mtp.Flags) },
		given{"From": []int{-1}, "Places": 6, "Later": 3, "TestSteps": 2, "FFN": 64, "Heads": 2, "KVHeads": 1,
			"HeadDim": 16},
		given{"TestSteps": 3, "Decay": .2, "Places": 5, "Later": 2, "FFN": 32, "RopeBase": 100.,
			"DraftVocab": 64},
		[]given{{"TestSteps": 1, "Later": nil}},
		nil,
	},
	"medusa": {
		func() train.HeadFlags { return new(medusa.Flags) },
		given{"Places": 6, "Depths": 2},
		given{"Optimizer": "muon", "Schedule": "linear", "Loss": "kl", "Decay": .5, "Places": 5, "Nodes": 7, "Depths": 3,
			"ResBlocks": 2, "OwnOutputs": true},
		[]given{{"Loss": "kl"}},
		nil,
	},
	"falcon": {
		func() train.HeadFlags { return new(falcon.Flags) },
		given{"From": []int{-1}, "FFN": 64, "Heads": 2, "KVHeads": 2, "HeadDim": 16},
		given{"States": float32(.1), "Logits": float32(1), "Soft": float32(.1), "Temperature": float32(3),
			"Glance": []float64{0, 0}, "Block": 3, "Recurrent": true, "FFN": 32, "RopeBase": 100.},
		[]given{{"Soft": float32(0)}, {"Block": 1}},
		nil,
	},
	"peagle": {
		func() train.HeadFlags { return new(peagle.Flags) },
		given{"From": []int{-1}, "Places": 8, "Depths": 3, "Layers": 1, "FFN": 64, "Heads": 2, "KVHeads": 1,
			"HeadDim": 16, "Taps": []int{1, 2}},
		given{"Places": 5, "Keep": .3, "KeepLeast": .9, "Depths": 2, "Masks": true, "Layers": 2,
			"FFN": 32, "RopeBase": 100., "Taps": []int{1}, "DraftVocab": 64},
		nil,
		nil,
	},
	"draft": {
		func() train.HeadFlags { return new(draft.Flags) },
		given{"From": []int{1}, "Places": 6},
		given{"From": []int{0}, "Places": 5, "Soft": float32(.5)},
		nil,
		func(r train.HeadRecipe) { r.Common().Held.Length = 32 },
	},
	"specblock": {
		func() train.HeadFlags { return new(specblock.Flags) },
		given{"From": []int{-1}, "Layers": 1, "Anchors": 4, "Blocks": 2, "Block": 3, "FFN": 64,
			"RankWidth": 32, "RankTexts": 4, "RankSteps": 2, "Settle": 0., "Taps": []int{1, 2}},
		given{"Anchors": 3, "Blocks": 1, "Settle": .5, "Decay": .3, "Balance": .9, "RankTexts": 8, "RankSteps": 3,
			"PlaceMeans": true, "Slots": .3, "Block": 2, "Layers": 2, "FFN": 32, "DraftVocab": 64,
			"RankWidth": 64, "RankFull": true, "Taps": []int{1}, "Broadcast": true},
		[]given{{"RankWidth": 0, "RankTexts": nil, "RankSteps": nil}, {"RankTexts": 0, "RankSteps": nil}},
		nil,
	},
}

// The papers' recipes train with AdamW from random weights, at rates that rise and then fall to zero.
func TestPaperRecipes(t *testing.T) {
	m := traintest.JobWithTarget(t).Target
	for name, c := range allTrained {
		f := c.flags()
		if !hasPaper(c) {
			continue
		}
		reflect.ValueOf(f).Elem().FieldByName("Paper").SetBool(true)
		r, err := f.Recipe(m)
		if err != nil {
			t.Fatal(err)
		}
		course := r.Common().Course
		o := &course.Optimizer
		if o.Muon || o.Decay != 0 || o.Rate < 3e-5 || o.Rate > 1e-3 || course.Schedule.Floor != 0 ||
			math.Abs(course.Schedule.Warmup+course.Schedule.Cooldown-1) > 1e-9 {
			t.Errorf("%s: the paper's course is %+v", name, course)
		}
		if from := reflect.ValueOf(r).Elem().FieldByName("From"); from.IsValid() && from.Len() != 0 {
			t.Errorf("%s: the paper's head begins as the target's layers %v", name, from)
		}
	}
}

// hasPaper reports whether a command can start from a paper's recipe.
func hasPaper(c trained) bool {
	return reflect.ValueOf(c.flags()).Elem().FieldByName("Paper").IsValid()
}

// given returns the command's flags with some fields set.
func (c trained) given(all ...given) train.HeadFlags {
	f := c.flags()
	for _, g := range all {
		for field, value := range g {
			v := reflect.ValueOf(f).Elem().FieldByName(field)
			switch {
			case value == nil:
				v.SetZero()
				continue
			case v.Kind() == reflect.Pointer:
				v.Set(reflect.New(v.Type().Elem()))
				v = v.Elem()
			}
			v.Set(reflect.ValueOf(value))
		}
	}
	return f
}

// train trains on the tiny job's texts if the flags are accepted, without measuring on the way.
func (c trained) train(j train.Job, name string, f train.HeadFlags) error {
	r, err := f.Recipe(j.Target)
	if err != nil {
		return err
	}
	b := r.Common()
	shorten(&b.HeadText)
	b.ValidateEvery = 0
	if c.change != nil {
		c.change(r)
	}
	if err := j.CheckFlags(r, f); err != nil {
		return err
	}
	return j.TrainHead(context.Background(), name, r)
}

// course has the flags that all commands share, with other values.
var course = given{"Steps": 3, "Rows": 8, "Seed": uint64(9), "Greedy": 0., "Paper": true, "Optimizer": "adamw",
	"AdamRate": float32(.1), "Rate": float32(.1), "Schedule": "cosine", "Warmup": .8, "Clip": .01}

// ofAll reports whether all flags are shared by all commands: these do not take others' meaning away.
func ofAll(b given) bool {
	for field := range b {
		if _, ok := course[field]; !ok && field != "TrainOn" {
			return false
		}
	}
	return true
}

// Every flag of a command that trains a head changes the head, alone and together with every other
// flag that may take its meaning away, or the command refuses it.
func TestFlagsAreObeyedOrRefused(t *testing.T) {
	j := traintest.JobWithTarget(t)
	j.Threads = 1
	names := 0
	for name, c := range allTrained {
		head := func(all ...given) (file []byte, err error) {
			f := c.given(append([]given{{"Steps": 2}, c.tiny}, all...)...)
			names++
			folder := fmt.Sprintf("head%04d", names)
			if err := c.train(j, folder, f); err != nil {
				return nil, err
			}
			b, err := os.ReadFile(filepath.Join(j.Dir, folder, "model-f32.gguf"))
			return bytes.ReplaceAll(b, []byte(folder), nil), err
		}
		for _, b := range append([]given{{}}, c.with...) {
			others := given{}
			if ofAll(b) {
				maps.Copy(others, course)
			}
			maps.Copy(others, c.others)
			if !hasPaper(c) {
				delete(others, "Paper")
			}
			without, err := head(b)
			if err != nil {
				t.Errorf("%s with %v: %v", name, b, err)
				continue
			}
			for field, value := range others {
				if _, same := b[field]; same {
					continue
				}
				with, err := head(b, given{field: value})
				if err == nil && bytes.Equal(with, without) {
					t.Errorf("%s: %s beside %v is taken and changes nothing", name, field, b)
				}
			}
		}
	}
}
