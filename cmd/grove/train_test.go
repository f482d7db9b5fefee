package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be trained is refused at once, with what to do about it.
func TestTrainRefuses(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"--dir":    {"train", "target", "--data", dir},
		"--data":   {"train", "target", "--dir", dir, "--data", filepath.Join(dir, "none"), "--goroot", dir},
		"--goroot": {"train", "draft", "--dir", dir, "--data", dir, "--goroot", filepath.Join(dir, "none")},
	} {
		code, _, err := command("", args...)
		if code != exitUsage || !strings.Contains(err, want) {
			t.Errorf("grove %q: status %d, %q; want status 2 and an error with %q", args, code, err, want)
		}
	}
}
