package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// shards writes a folder of two shards and an index.
func shards(t *testing.T, weightMap map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for i, names := range [][]string{{"a", "b"}, {"c"}} {
		w := NewWriter()
		w.SetMetadata("format", "pt")
		for _, n := range names {
			w.AddTensor(must(tensor.FromFloat32s(n, tensor.F16, []int{1}, []float32{float32(n[0])})))
		}
		if err := w.WriteFile(filepath.Join(dir, fmt.Sprintf("model-%05d-of-00002.safetensors", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	index := must(json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 6}, "weight_map": weightMap}))
	testfile.Write(t, filepath.Join(dir, singleName+indexEnd), index)
	return dir
}

const first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"

func TestShards(t *testing.T) {
	f, err := Open(shards(t, map[string]string{"a": first, "b": first, "c": second}))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Tensors) != 3 || f.Metadata["format"] != "pt" {
		t.Errorf("%v, %v", f.Tensors, f.Metadata)
	}
	for _, n := range []string{"a", "b", "c"} {
		if x := must(must(f.Load(n)).Float32s()); x[0] != float32(n[0]) {
			t.Errorf("%s holds %v", n, x)
		}
	}
}

func TestShardsFail(t *testing.T) {
	for want, m := range map[string]map[string]string{
		`tensor "c": is not in`:                           {"a": first, "b": first, "c": first},
		`tensor "d": is not in`:                           {"a": first, "d": second},
		`names "no-file.safetensors", which is not there`: {"a": first, "c": "no-file.safetensors"},
		`"weight_map": is missing`:                        {},
		`"../x.safetensors" leaves`:                       {"a": "../x.safetensors"},
		`"/x.safetensors" leaves`:                         {"a": "/x.safetensors"},
		`"a/../model-0`:                                   {"a": "a/../" + first, "b": first},
		`".." leaves`:                                     {"a": ".."},
		`"" leaves`:                                       {"a": ""},
		`"..\\x.safetensors" leaves`:                      {"a": `..\x.safetensors`},
		`"C:x.safetensors" leaves`:                        {"a": `C:x.safetensors`},
	} {
		_, err := OpenFolder(shards(t, m))
		if fe := (*fileerr.Error)(nil); !errors.As(err, &fe) || fe.Remedy == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	dir := shards(t, map[string]string{"a": first, "b": first, "c": second})
	testfile.Write(t, filepath.Join(dir, second), must(os.ReadFile(filepath.Join(dir, first))))
	if _, err := OpenFolder(dir); err == nil || !strings.Contains(err.Error(), "is also in") {
		t.Error(err)
	}
	testfile.Write(t, filepath.Join(dir, singleName+indexEnd), []byte("{"))
	if _, err := OpenFolder(dir); err == nil || !strings.Contains(err.Error(), "JSON") {
		t.Error(err)
	}
	if _, err := OpenFolder(t.TempDir()); err == nil || !strings.Contains(err.Error(),
		"holds neither model.safetensors nor") {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A folder without safetensors is read from PyTorch's file, whose tensors are there as any others;
// safetensors come first.
func TestTorch(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, torchName), must(os.ReadFile("../torch/testdata/protocol2.pt")),
		0o666); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x := must(must(f.Load("layers.0.bias")).Float32s())
	if !slices.Equal(x, []float32{8, 9, 10, 11}) {
		t.Errorf("read %v", x)
	}
	if _, err := f.Load("d2t"); err == nil || !strings.Contains(err.Error(), `dtype "I64"`) {
		t.Errorf("whole numbers as weights: %v", err)
	}
	if y, ok := f.Tensor("t2d"); !ok || y.Type != numtype.Bool || string(must(y.ReadAll()).Data) != "\x01\x00\x00\x01\x01" {
		t.Errorf("t2d is %v", y)
	}
	bad := filepath.Join(dir, "bad.bin")
	testfile.Write(t, bad, []byte("PK\x03\x04"))
	if _, err := Open(bad); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("a damaged file: %v", err)
	}
	w := NewWriter()
	w.AddTensor(must(tensor.FromFloat32s("other", tensor.F16, []int{1}, []float32{1})))
	if err := w.WriteFile(filepath.Join(dir, singleName)); err != nil {
		t.Fatal(err)
	}
	if g := must(OpenFolder(dir)); g.Tensors[0].Name != "other" {
		t.Errorf("reads %v", g.Tensors)
	} else {
		g.Close()
	}
}
