package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/train"
)

// What cannot be trained is refused at once, with what to do about it.
func TestTrainRefuses(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"--dir":            {"train", "target", "--data", dir},
		"--data":           {"train", "target", "--dir", dir, "--data", filepath.Join(dir, "none"), "--goroot", dir},
		"--name":           {"train", "jet", "--head", "causal", "--dir", dir, "--data", dir, "--from=-1,0,1", "--name", "target"},
		"--head":           {"train", "jet", "--dir", dir, "--data", dir},
		"--name \"cache\"": {"train", "eagle", "--dir", dir, "--data", dir, "--name", "cache"},
		"--eagle":          {"train", "eagle", "--dir", dir, "--data", dir, "--eagle", "4"},
		"--gamma":          {"train", "jet", "--head", "causal", "--dir", dir, "--data", dir, "--gamma", "much"},
		"--goroot":         {"train", "draft", "--dir", dir, "--data", dir, "--goroot", filepath.Join(dir, "none")},
	} {
		code, _, err := command("", args...)
		if code != exitUsage || !strings.Contains(err, want) {
			t.Errorf("grove %q: status %d, %q; want status 2 and an error with %q", args, code, err, want)
		}
	}
}

// Flags change what they name in the recipe of the shipped heads, and nothing else.
func TestTrainJetRecipe(t *testing.T) {
	three, half, ce := 3, 0.5, "ce"
	for _, c := range []struct {
		cmd    trainJetCmd
		change func(r *train.HeadRecipe)
	}{
		{trainJetCmd{Head: "causal"}, func(r *train.HeadRecipe) {}},
		{trainJetCmd{Head: "bidirectional"}, func(r *train.HeadRecipe) { r.Causal = false }},
		{trainJetCmd{Head: "causal", Gamma: &half, Loss: &ce}, func(r *train.HeadRecipe) { r.Gamma, r.Loss = 0.5, "ce" }},
		{trainJetCmd{Head: "causal", From: []int{-1}, Layers: &three}, func(r *train.HeadRecipe) { r.From, r.Layers = nil, 3 }},
		{trainJetCmd{Head: "causal", From: []int{-1, 5}}, func(r *train.HeadRecipe) { r.From, r.Layers = []int{-1, 5}, 2 }},
		{trainJetCmd{Head: "causal", Taps: []int{0, 6}, Steps: &three}, func(r *train.HeadRecipe) { r.Taps, r.Steps = []int{0, 6}, 3 }},
		{trainJetCmd{Head: "causal", Block: &three}, func(r *train.HeadRecipe) { r.Block, r.ShortBlock = 3, 3 }}, // none are longer
	} {
		want := train.JetRecipe(true)
		c.change(&want)
		if got := c.cmd.recipe(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", c.cmd, got, want)
		}
	}
}

// The same of the EAGLE head's, and of the family with a larger vocabulary.
func TestTrainEagleRecipe(t *testing.T) {
	two, three, half, source := 2, 3, 0.5, "go"
	for _, c := range []struct {
		cmd    trainEagleCmd
		change func(r *train.EagleRecipe)
	}{
		{trainEagleCmd{}, func(r *train.EagleRecipe) {}},
		{trainEagleCmd{Version: &two}, func(r *train.EagleRecipe) { *r = train.NewEagleRecipe(2) }},
		{trainEagleCmd{TestSteps: &two, Decay: &half}, func(r *train.EagleRecipe) { r.TestSteps, r.Decay = 2, 0.5 }},
		{trainEagleCmd{From: []int{-1}, Taps: []int{0, 2, 4}}, func(r *train.EagleRecipe) { r.From, r.Taps = nil, []int{0, 2, 4} }},
		{trainEagleCmd{From: []int{4, 5}, DraftVocab: &three, Only: &source}, func(r *train.EagleRecipe) { r.From, r.DraftVocab, r.Only = []int{4, 5}, 3, "go" }},
	} {
		want := train.NewEagleRecipe(3)
		c.change(&want)
		if got := c.cmd.recipe(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", c.cmd, got, want)
		}
	}
	want := train.NewSiblingRecipe()
	want.Head.Steps, want.Head.Short.Files, want.Head.Long.Files, want.Router.Short.Files, want.Router.Long.Files = 2, 3, 0, 3, 0
	cmd := trainSiblingCmd{HeadSteps: &two, Files: &three}
	if got := cmd.recipe(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", cmd, got, want)
	}
}
