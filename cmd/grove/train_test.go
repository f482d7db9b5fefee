package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/train/eagle"
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

// Flags change what they name in the recipe of the family with a larger vocabulary, and nothing else.
func TestTrainSiblingRecipe(t *testing.T) {
	two, three := 2, 3
	want := eagle.NewSiblingRecipe()
	want.Head.Steps, want.Head.Short.Files, want.Head.Long.Files, want.Router.Short.Files, want.Router.Long.Files = 2, 3, 0, 3, 0
	cmd := trainSiblingCmd{HeadSteps: &two, Files: &three}
	if got := cmd.recipe(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", cmd, got, want)
	}
}
