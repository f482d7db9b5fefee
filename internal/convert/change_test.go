package convert

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// If a file is cut short or written to during its conversion, the conversion ends with an error
// that names the file, and writes nothing.
func TestFileChangesWhileConverting(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s, o := shape(t, "tiny-qwen3-untied"), synth.Options{Type: tensor.F32, Seed: 5}
	err1, err2 := synth.Write(ctx, filepath.Join(dir, "m.gguf"), s, o), synth.WriteHF(ctx, filepath.Join(dir, "hf"), s, o)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	type conversion struct {
		from, file, to string
		run            func(from, to string, progress func(done, total int64)) error
	}
	conversions := []conversion{
		{"m.gguf", "m.gguf", "q.gguf", func(from, to string, progress func(done, total int64)) error {
			_, err := Quantize(ctx, from, to, Options{Type: tensor.Q8_0, Progress: progress})
			return err
		}},
		{"m.gguf", "m.gguf", "out", func(from, to string, progress func(done, total int64)) error {
			_, err := ToHF(ctx, from, to, Options{Type: Keep, Progress: progress})
			return err
		}},
		{"hf", "hf/model.safetensors", "q.gguf", func(from, to string, progress func(done, total int64)) error {
			_, err := ToGGUF(ctx, from, to, Options{Type: Keep, Progress: progress})
			return err
		}},
	}
	contents := map[string][]byte{}
	for _, c := range conversions {
		data, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		contents[c.file] = data
	}
	cases.Check(t, 40, func(t *rapid.T) {
		c := rapid.SampledFrom(conversions).Draw(t, "conversion")
		file := filepath.Join(dir, c.file)
		to := filepath.Join(dir, c.to)
		good := contents[c.file]
		hour := time.Now().Add(-time.Hour)
		if err := errors.Join(os.WriteFile(file, good, 0o666), os.Chtimes(file, hour, hour)); err != nil {
			t.Fatal(err)
		}
		step, left := rapid.IntRange(0, 10).Draw(t, "step"), rapid.IntRange(0, len(good)).Draw(t, "bytes left")
		var failed error
		err := c.run(filepath.Join(dir, c.from), to, func(int64, int64) {
			step--
			if step == -1 {
				if failed = os.Truncate(file, int64(left)); left == len(good) {
					failed = os.WriteFile(file, make([]byte, left), 0o666)
				}
			}
		})
		if failed != nil || err == nil || !strings.Contains(err.Error(), file+": ") ||
			!strings.Contains(err.Error(), "while it was read") {
			t.Fatal(failed, err)
		}
		if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("something is written: %v", err)
		}
	})
	// the file and the folder that were converted
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 {
		t.Errorf("left over: %v", left)
	}
}
