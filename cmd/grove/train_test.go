package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/grovellm/grove/train"
)

// What cannot be trained is refused at once, with what to do about it.
func TestTrainRefuses(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"--dir":    {"train", "target", "--data", dir},
		"--data":   {"train", "target", "--dir", dir, "--data", filepath.Join(dir, "none"), "--goroot", dir},
		"--name":   {"train", "jet", "--head", "causal", "--dir", dir, "--data", dir, "--from=-1,0,1", "--name", "target"},
		"--head":   {"train", "jet", "--dir", dir, "--data", dir},
		"--gamma":  {"train", "jet", "--head", "causal", "--dir", dir, "--data", dir, "--gamma", "much"},
		"--goroot": {"train", "draft", "--dir", dir, "--data", dir, "--goroot", filepath.Join(dir, "none")},
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
