package model_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// damage is a change to files while a model is loaded from them.
type damage struct {
	Kind  string
	Files []string // of the model's folder
	From  string   // the folder of another model, with files of the same names
	Cut   int64    // bytes that remain of a file
	Step  int      // the loading process does it before this call of Progress; −1: another process does it
}

// do damages the files of a folder, one after the other.
func (d *damage) do(dir string) error {
	for _, name := range d.Files {
		path, other := filepath.Join(dir, name), filepath.Join(d.From, name)
		var err error
		switch d.Kind {
		case "cut":
			err = os.Truncate(path, d.Cut)
		case "remove":
			err = os.Remove(path)
		case "replace":
			err = os.Rename(other, path)
		case "overwrite": // in place
			var data []byte
			if data, err = os.ReadFile(other); err == nil {
				err = overwrite(path, data)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func overwrite(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	later := time.Now().Add(time.Second) // writes within one clock tick have the same time
	return errors.Join(err, f.Truncate(int64(len(data))), f.Close(), os.Chtimes(path, later, later))
}

// loading is the request to the loading process, and loaded its answer.
type (
	loading struct {
		Dir, Path string
		Damage    damage
	}
	loaded struct {
		Digest uint64
		Err    string
	}
)

// digest distinguishes models by their results and by their tokenizers.
func digest(path string, progress func(done, total int64)) (uint64, error) {
	m, err := model.Open(path, model.Options{Threads: 1, Progress: progress})
	if err != nil {
		return 0, err
	}
	defer m.Close()
	p, h := m.NewPass(), fnv.New64a()
	rows := model.Rows{Cache: m.NewCache(), Tree: tree.Chain([]int32{5, 3, 1, 2}), Logits: []int32{0, 1, 2, 3}}
	if err := p.Run(context.Background(), []model.Rows{rows}, nil); err != nil {
		return 0, err
	}
	for i := range 4 {
		binary.Write(h, binary.LittleEndian, p.Logits(0, i))
	}
	if m.Tokenizer == nil { // as when the folder has none
		return h.Sum64(), nil
	}
	binary.Write(h, binary.LittleEndian, m.Tokenizer.Encode("abba, a cab", tokenizer.EncodeOptions{}))
	return h.Sum64(), nil
}

// TestLoadingProcess is not a test but the process that loads: a fault kills only this process.
func TestLoadingProcess(t *testing.T) {
	if os.Getenv("GROVE_TEST_LOADING") == "" {
		t.Skip("run by TestFilesChangeWhileLoading")
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var l loading
		if err := in.Decode(&l); err == io.EOF {
			os.Exit(0)
		} else if err != nil {
			t.Fatal(err)
		}
		var answer loaded
		var err, failed error
		step := 0
		answer.Digest, err = digest(l.Path, func(int64, int64) {
			if step == l.Damage.Step {
				failed = l.Damage.do(l.Dir)
			}
			step++
		})
		if failed != nil {
			t.Fatal(failed)
		}
		if err != nil {
			answer.Err = err.Error()
		}
		if err := out.Encode(answer); err != nil {
			t.Fatal(err)
		}
	}
}

// loader is the loading process.
type loader struct {
	cmd    *exec.Cmd
	in     *json.Encoder
	out    *json.Decoder
	stderr bytes.Buffer
}

func startLoader(t testing.TB) *loader {
	l := &loader{cmd: exec.Command(os.Args[0], "-test.run=^TestLoadingProcess$")}
	l.cmd.Env, l.cmd.Stderr = append(os.Environ(), "GROVE_TEST_LOADING=1"), &l.stderr
	in, err1 := l.cmd.StdinPipe()
	out, err2 := l.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, l.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	l.in, l.out = json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))
	t.Cleanup(func() { in.Close(); l.cmd.Wait() })
	return l
}

// load makes the process load a model. Meanwhile the caller's process does the damage after a
// pause, if that is its part.
func (l *loader) load(t *rapid.T, x loading, pause time.Duration) loaded {
	if err := l.in.Encode(x); err != nil {
		t.Fatal(err)
	}
	if x.Damage.Step < 0 {
		time.Sleep(pause)
		if err := x.Damage.do(x.Dir); err != nil {
			t.Fatal(err)
		}
	}
	var answer loaded
	if err := l.out.Decode(&answer); err != nil {
		l.cmd.Wait()
		t.Fatalf("the process that loads died: %v\n%.2000s", l.cmd.ProcessState, l.stderr.String())
	}
	return answer
}

// format is one way to store a model: the names of its files, and the path in the folder to open.
type format struct {
	name, open string
	write      func(t testing.TB, dir string, s synth.Shape, seed uint64)
}

var formats = []format{
	{"GGUF", "m.gguf", writeGGUF},
	{"split GGUF", "m-00001-of-00002.gguf", func(t testing.TB, dir string, s synth.Shape, seed uint64) {
		writeGGUF(t, dir, s, seed)
		splitGGUF(t, dir)
	}},
	{"safetensors", "", writeFolder},
	{"shards", "", func(t testing.TB, dir string, s synth.Shape, seed uint64) {
		writeFolder(t, dir, s, seed)
		shard(t, dir)
	}},
	{"PyTorch", "", func(t testing.TB, dir string, s synth.Shape, seed uint64) {
		writeFolder(t, dir, s, seed)
		writeTorch(t, dir)
	}},
}

// Whatever happens to a model's files while it is loaded, and whichever process does it:
// loading returns an error that names a file, or the model that the files held at one
// moment. It never ends the process.
func TestFilesChangeWhileLoading(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			s, err := synth.Lookup("tiny-qwen3-untied")
			if err != nil {
				t.Fatal(err)
			}
			before, after := t.TempDir(), t.TempDir()
			f.write(t, before, s, 1)
			s.RopeBase *= 3
			f.write(t, after, s, 2)
			swapTokens(t, after)
			began := time.Now()
			old, err1 := digest(filepath.Join(before, f.open), nil)
			took := time.Since(began)
			other, err2 := digest(filepath.Join(after, f.open), nil)
			if err := errors.Join(err1, err2); err != nil || old == other {
				t.Fatal(err, old, other)
			}
			var names []string
			for _, e := range must(os.ReadDir(before)) {
				names = append(names, e.Name())
			}
			process := startLoader(t)
			cases.Check(t, 15, func(t *rapid.T) {
				dir, from := copyFolder(t, before), copyFolder(t, after)
				defer os.RemoveAll(dir)
				defer os.RemoveAll(from)
				kind := rapid.SampledFrom([]string{"cut", "replace", "overwrite", "remove"}).Draw(t, "damage")
				d := damage{Kind: kind, From: from}
				d.Files = names
				if d.Kind == "cut" || rapid.Bool().Draw(t, "one") {
					d.Files = []string{rapid.SampledFrom(names).Draw(t, "file")}
				}
				if d.Kind == "cut" {
					size := must(os.Stat(filepath.Join(dir, d.Files[0]))).Size()
					d.Cut = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, size-1)).Draw(t, "bytes left")
				}
				d.Step = rapid.OneOf(rapid.Just(-1), rapid.IntRange(0, 15)).Draw(t, "step")
				pause := time.Duration(rapid.IntRange(0, 1000).Draw(t, "pause")) * took / 500
				got := process.load(t, loading{dir, filepath.Join(dir, f.open), d}, pause)
				says := func(name string) bool { return strings.Contains(got.Err, name) }
				named := slices.ContainsFunc(d.Files, says) || d.Kind == "remove"
				if named && strings.Contains(got.Err, dir) || got.Err == "" && got.Digest == old {
					return
				}
				// It may have been loaded after the damage to one file and before that to the next.
				dir, d.From = copyFolder(t, before), copyFolder(t, after)
				defer os.RemoveAll(dir)
				defer os.RemoveAll(d.From)
				for _, name := range d.Files {
					one := d
					one.Files = []string{name}
					if err := one.do(dir); err != nil {
						t.Fatal(err)
					}
					now, err := digest(filepath.Join(dir, f.open), nil)
					if err == nil && got.Err == "" && got.Digest == now {
						return
					}
				}
				t.Fatalf("%+v: a model that no files hold, or an error that names none of them: %q", d, got.Err)
			})
		})
	}
}

// copyFolder copies a folder's files, and makes the copies an hour old.
func copyFolder(t *rapid.T, dir string) string {
	to, err := os.MkdirTemp("", "grove-")
	if err == nil {
		err = os.CopyFS(to, os.DirFS(dir))
	}
	if err != nil {
		t.Fatal(err)
	}
	hour := time.Now().Add(-time.Hour)
	for _, e := range must(os.ReadDir(to)) {
		if err := os.Chtimes(filepath.Join(to, e.Name()), hour, hour); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func writeGGUF(t testing.TB, dir string, s synth.Shape, seed uint64) {
	o := synth.Options{Type: tensor.F16, Seed: seed}
	if err := synth.Write(context.Background(), filepath.Join(dir, "m.gguf"), s, o); err != nil {
		t.Fatal(err)
	}
}

func writeFolder(t testing.TB, dir string, s synth.Shape, seed uint64) {
	if err := synth.WriteHF(context.Background(), dir, s, synth.Options{Type: tensor.F32, Seed: seed}); err != nil {
		t.Fatal(err)
	}
}

// swapTokens makes a folder's tokenizer exchange a and b.
func swapTokens(t testing.TB, dir string) {
	path := filepath.Join(dir, "tokenizer.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return // GGUF: the tokenizer is in the file with the weights
	}
	var all map[string]any
	if err := errors.Join(err, json.Unmarshal(data, &all)); err != nil {
		t.Fatal(err)
	}
	vocab := all["model"].(map[string]any)["vocab"].(map[string]any)
	vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
	if err := os.WriteFile(path, must(json.Marshal(all)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// splitGGUF splits the file m.gguf of a folder in two.
func splitGGUF(t testing.TB, dir string) {
	path := filepath.Join(dir, "m.gguf")
	f := must(gguf.Open(path))
	for part := range 2 {
		w := new(gguf.Writer)
		if part == 0 {
			ggufkeys.SetAll(w, f)
		}
		w.Set("split.no", uint16(part))
		w.Set("split.count", uint16(2))
		for i, info := range f.Tensors {
			if i%2 == part {
				w.AddTensor(must(f.Load(info.Name)))
			}
		}
		if err := w.WriteFile(filepath.Join(dir, fmt.Sprintf("m-%05d-of-00002.gguf", part+1))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
}

// weightsOf reads a folder's tensors into memory, and removes their file.
func weightsOf(t testing.TB, dir string) map[string]tensor.Tensor {
	f, all := must(safetensors.OpenFolder(dir)), map[string]tensor.Tensor{}
	for _, info := range f.Tensors {
		x := must(f.Load(info.Name))
		all[x.Name] = must(tensor.FromFloat32s(x.Name, tensor.F32, x.Shape, must(x.Float32s())))
	}
	if err := errors.Join(f.Close(), os.Remove(filepath.Join(dir, "model.safetensors"))); err != nil {
		t.Fatal(err)
	}
	return all
}

// shard puts a folder's tensors into two files and an index.
func shard(t testing.TB, dir string) {
	all := weightsOf(t, dir)
	index := map[string]string{}
	for part := range 2 {
		w, name := safetensors.NewWriter(), fmt.Sprintf("model-%05d-of-00002.safetensors", part+1)
		for i, x := range slices.Sorted(maps.Keys(all)) {
			if i%2 == part {
				w.AddTensor(all[x])
				index[x] = name
			}
		}
		if err := w.WriteFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	text := must(json.Marshal(map[string]any{"weight_map": index}))
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// writeTorch puts a folder's tensors into a PyTorch file.
func writeTorch(t testing.TB, dir string) {
	all := map[string]testdata.Array{}
	for name, x := range weightsOf(t, dir) {
		all[name] = testdata.Array{Shape: x.Shape, Data: x.Data}
	}
	if err := os.WriteFile(filepath.Join(dir, "pytorch_model.bin"), testdata.Torch(t, all), 0o666); err != nil {
		t.Fatal(err)
	}
}
