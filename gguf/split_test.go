package gguf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// writePart writes part i of n with the given tensors, each an F32 scalar holding i.
func writePart(t *testing.T, dir string, i, n, total int, names ...string) {
	t.Helper()
	w := new(Writer)
	if i == 0 {
		w.Set("general.architecture", "llama")
	}
	w.Set(splitNo, uint16(i))
	w.Set(splitCount, uint16(n))
	w.Set(splitTensors, int32(total))
	for _, name := range names {
		w.AddTensor(must(tensor.FromFloat32s(name, tensor.F32, []int{1}, []float32{float32(i)})))
	}
	if err := w.WriteFile(filepath.Join(dir, partName(i, n))); err != nil {
		t.Fatal(err)
	}
}

func partName(i, n int) string { return fmt.Sprintf("m-%05d-of-%05d.gguf", i+1, n) }

// The first part opens the others: their tensors appear as one file's.
func TestSplit(t *testing.T) {
	dir := t.TempDir()
	writePart(t, dir, 0, 3, 3, "a")
	writePart(t, dir, 1, 3, 3)
	writePart(t, dir, 2, 3, 3, "b", "c")
	f, err := Open(filepath.Join(dir, partName(0, 3)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if arch, _ := Get[string](f, "general.architecture"); arch != "llama" || len(f.Tensors) != 3 {
		t.Errorf("%q with %d tensors", arch, len(f.Tensors))
	}
	for name, want := range map[string]float32{"a": 0, "b": 2, "c": 2} {
		if x := must(must(f.Load(name)).Float32s()); x[0] != want {
			t.Errorf("%s holds %v, want %v", name, x[0], want)
		}
	}
}

func TestSplitFails(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		make func(dir string)
	}{
		"part missing": {"00002-of-00002.gguf: no such file", func(dir string) { writePart(t, dir, 0, 2, 1, "a") }},
		"tensor twice": {`tensor "a": occurs in this part and in`,
			func(dir string) { writePart(t, dir, 0, 2, 2, "a"); writePart(t, dir, 1, 2, 2, "a") }},
		"tensor missing": {"announces 3 tensors, but the parts hold 2",
			func(dir string) { writePart(t, dir, 0, 2, 3, "a"); writePart(t, dir, 1, 2, 3, "b") }},
		"other part": {`key "split.no": is 0 in part 2 of 2`, func(dir string) {
			writePart(t, dir, 0, 2, 2, "a")
			data := must(os.ReadFile(filepath.Join(dir, partName(0, 2))))
			testfile.Write(t, filepath.Join(dir, partName(1, 2)), data)
		}},
		"not the first": {"part 2 of 2 of a split model: open the part whose name ends in -00001-of-00002.gguf", func(dir string) {
			writePart(t, dir, 1, 2, 1, "a")
			if err := os.Rename(filepath.Join(dir, partName(1, 2)), filepath.Join(dir, partName(0, 2))); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		dir := t.TempDir()
		c.make(dir)
		_, err := Open(filepath.Join(dir, partName(0, 2)))
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "cannot find the file specified", "no such file"),
			c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	writePart(t, dir, 0, 2, 1, "a")
	other := filepath.Join(dir, "renamed.gguf")
	if err := os.Rename(filepath.Join(dir, partName(0, 2)), other); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(other); err == nil || !strings.Contains(err.Error(),
		"must have a name ending in -00001-of-00002.gguf") {
		t.Error(err)
	}
}
