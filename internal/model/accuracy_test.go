package model_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

var accuracyFiles = flag.String("accuracy-files", "", "keep the files of TestAccuracy in this `folder`, for another engine to read")

// accuracyShape is wide enough for several groups of activations of any size, and for whole blocks of K types.
var accuracyShape = synth.Shape{Name: "accuracy", Arch: "qwen3", Vocab: 512, Hidden: 256, Layers: 3, Heads: 4,
	KVHeads: 2, HeadDim: 64, FFN: 512,
	Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 64, Tokens: synth.Qwen2}

// Errors of logits are measured at accuracyTokens positions of each of accuracySeeds models.
const (
	accuracyTokens = 128
	accuracySeeds  = 3
)

// outliers is how many inputs of every matrix are outliers.
const outliers = 4

// accuracyCases are types of weights and caches, and llama.cpp's errors with them: the root mean
// square by the size of the outliers.
//
// The errors were measured with llama.cpp at commit 82bb4850 (August 2026) on an x86-64 processor
// with AVX-512, on the files that this test keeps with its flag -accuracy-files: a program with
// llama.cpp's library decoded the file "tokens" in one batch on the CPU, with a cache of the type
// here and without flash attention. An error is the difference between the logits of model.gguf and
// those of f32.gguf with a cache of f32.
var accuracyCases = []struct {
	weights tensor.Type
	cache   nn.KVType
	llama   map[float32]float64
	alike   float32 // with outliers of at least this size both engines round alike
}{
	{tensor.Q8_0, nn.KVF32, map[float32]float64{1: 0.26098, 10: 0.69844, 40: 2.21214}, 40},
	{tensor.Q4_K, nn.KVF32, map[float32]float64{1: 0.35867, 10: 1.41642, 40: 3.57368}, never},
	{tensor.Q5_K, nn.KVF32, map[float32]float64{1: 0.35268, 10: 1.44951, 40: 3.48911}, never},
	{tensor.Q6_K, nn.KVF32, map[float32]float64{1: 0.32730, 10: 1.41852, 40: 3.43996}, never},
	{tensor.Q5_1, nn.KVF32, map[float32]float64{1: 0.26109, 10: 0.72497, 40: 2.31966}, 10},
	{tensor.Q5_0, nn.KVF32, map[float32]float64{1: 0.25629, 10: 0.71674, 40: 2.17902}, 10},
	{tensor.Q4_1, nn.KVF32, map[float32]float64{1: 0.26630, 10: 0.74118, 40: 2.26049}, 10},
	{tensor.MXFP4, nn.KVF32, map[float32]float64{1: 0.25190, 10: 0.71917, 40: 2.28129}, 10},
	{tensor.Q4_0, nn.KVF32, map[float32]float64{1: 0.25943, 10: 0.68876, 40: 2.19548}, 10},
	{tensor.BF16, nn.KVF32, map[float32]float64{1: 0.08184, 10: 0.08171, 40: 0.08171}, 1},
	{tensor.BF16, nn.KVBF16, map[float32]float64{1: 0.11123, 10: 0.10648, 40: 0.10648}, 1},
}

// Both engines round alike when they round to BF16, and in blocks of 32 where a single outlier
// determines the scale. Chance then decides whose error is larger, by about 1 %.
const (
	chance = 1.02
	never  = math.MaxFloat32
)

// The error of logits against f32 on the same weights is at most llama.cpp's on the same file, for
// models of random weights, and for those whose activations have outliers, as trained models' have.
func TestAccuracy(t *testing.T) {
	for _, c := range accuracyCases {
		for factor, llama := range c.llama {
			if factor == 10 && *accuracyFiles == "" {
				continue // it lies between the others
			}
			t.Run(fmt.Sprintf("%v/%v/%g", c.weights, c.cache, factor), func(t *testing.T) {
				square := 0.0
				for seed := range accuracySeeds {
					file, exact, ids := withOutliers(t, seed, factor, c.weights)
					if *accuracyFiles != "" {
						dir := filepath.Join(*accuracyFiles, fmt.Sprintf("%v-%g-%d", c.weights, factor, seed))
						text := strings.Trim(fmt.Sprint(ids), "[]")
						if err := errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, "model.gguf"), file, 0o666),
							os.WriteFile(filepath.Join(dir, "f32.gguf"), exact, 0o666),
							os.WriteFile(filepath.Join(dir, "tokens"), []byte(text), 0o666)); err != nil {
							t.Fatal(err)
						}
					}
					want := textLogits(t, exact, nn.KVF32, ids)
					for i, got := range textLogits(t, file, c.cache, ids) {
						d := float64(got - want[i])
						square += d * d / float64(len(want))
					}
				}
				ratio, most := math.Sqrt(square/accuracySeeds)/llama, 1.0
				if factor >= c.alike {
					most = chance
				}
				t.Logf("%.3f of llama.cpp's error", ratio)
				if !(ratio <= most) {
					t.Errorf("the error of logits is %.3f of llama.cpp's: want %.2f at most", ratio, most)
				}
			})
		}
	}
}

// cacheErrors is the error that a cache's type may cause in the logits of F32 models, relative to
// the root mean square of the logits. docs/accuracy.md has the measurements.
var cacheErrors = map[nn.KVType]float64{nn.KVBF16: 0.025, nn.KVQ8: 0.07}

// The type of keys and values causes an error in logits within its bound, with and without outliers.
func TestAccuracyOfCaches(t *testing.T) {
	for _, factor := range []float32{1, 10, 40} {
		square, errors := 0.0, map[nn.KVType]float64{}
		for seed := range accuracySeeds {
			_, exact, ids := withOutliers(t, seed, factor, tensor.F32)
			want := textLogits(t, exact, nn.KVF32, ids)
			for _, x := range want {
				square += float64(x) * float64(x)
			}
			for kv := range cacheErrors {
				for i, got := range textLogits(t, exact, kv, ids) {
					d := float64(got - want[i])
					errors[kv] += d * d
				}
			}
		}
		for kv, most := range cacheErrors {
			got := math.Sqrt(errors[kv] / square)
			t.Logf("outliers %g: %v adds %.5f", factor, kv, got)
			if !(got > 0 && got <= most) {
				t.Errorf("with outliers of %g times a cache of %v adds an error of %.5f of the logits: want %g at most", factor, kv, got, most)
			}
		}
	}
}

// accuracyBases are the models that withOutliers changes, by seed. Each is made once.
var accuracyBases [accuracySeeds]*gguf.File

// withOutliers returns a seeded random model and the same weights in F32, as GGUF files, and a text
// of random tokens. A few channels of every matrix's input are factor times as large as the others.
// The matrix's columns are smaller by the same factor, so the function is the same as with factor 1.
func withOutliers(t *testing.T, seed int, factor float32, typ tensor.Type) (file, exact []byte, ids []int32) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if accuracyBases[seed] == nil {
		base := filepath.Join(t.TempDir(), "base.gguf")
		check(synth.Write(context.Background(), base, accuracyShape, synth.Options{Type: tensor.F32, Seed: uint64(seed)}))
		data, err := os.ReadFile(base)
		check(err)
		accuracyBases[seed], err = gguf.Parse("base.gguf", data)
		check(err)
	}
	f := accuracyBases[seed]
	w, x := new(gguf.Writer), new(gguf.Writer)
	ggufkeys.SetAll(w, f)
	ggufkeys.SetFileType(w, typ)
	ggufkeys.SetAll(x, f)
	for _, info := range f.Tensors {
		from, err := f.Load(info.Name)
		check(err)
		v := make([]float32, from.Elements())
		check(from.DequantizeRows(v, 0, from.Rows()))
		scaleOutliers(info.Name, v, from.Cols(), factor)
		to := typ
		if len(from.Shape) < 2 {
			to = tensor.F32
		}
		encoded, err := tensor.FromFloat32s(info.Name, to, from.Shape, v)
		check(err)
		check(tensor.Dequantize(to, encoded.Data, v))
		wide, err := tensor.FromFloat32s(info.Name, tensor.F32, from.Shape, v)
		check(err)
		w.AddTensor(encoded)
		x.AddTensor(wide)
	}
	var files [2]bytes.Buffer
	for i, w := range []*gguf.Writer{w, x} {
		_, err := w.WriteTo(&files[i])
		check(err)
	}
	r := rand.New(rand.NewPCG(uint64(seed), 3))
	ids = make([]int32, accuracyTokens)
	for i := range ids {
		ids[i] = r.Int32N(int32(accuracyShape.Vocab))
	}
	return files[0].Bytes(), files[1].Bytes(), ids
}

// scaleOutliers enlarges some channels of every matrix's input, at their source: a norm, or rows of
// the matrix before. It makes the matrix's columns smaller in turn.
func scaleOutliers(name string, v []float32, cols int, factor float32) {
	channel := func(i, n int) int { return (2*i + 1) * n / (2 * outliers) } // spread evenly
	columns := func(f float32) {
		for row := 0; row < len(v); row += cols {
			for i := range outliers {
				v[row+channel(i, cols)] *= f
			}
		}
	}
	part := strings.TrimSuffix(name, ".weight")
	switch part[strings.LastIndexByte(part, '.')+1:] {
	case "attn_norm", "ffn_norm", "output_norm":
		for i := range outliers {
			v[channel(i, len(v))] *= factor
		}
	case "attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_down", "output":
		columns(1 / factor)
	case "ffn_up":
		columns(1 / factor)
		for i := range outliers {
			at := channel(i, len(v)/cols) * cols
			for j := range cols {
				v[at+j] *= factor
			}
		}
	}
}

// textLogits returns the logits at every position of a text.
func textLogits(t *testing.T, file []byte, cache nn.KVType, ids []int32) []float32 {
	t.Helper()
	m, err := model.OpenGGUF("model.gguf", file, model.Options{Threads: 1, KV: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, c := m.NewPass(), m.NewCache()
	defer c.Free()
	all := make([]int32, len(ids))
	for i := range all {
		all[i] = int32(i)
	}
	if err := p.Run(context.Background(), []model.Rows{{Cache: c, Tree: tree.Chain(ids), Logits: all}}, nil); err != nil {
		t.Fatal(err)
	}
	var out []float32
	for i := range ids {
		out = append(out, p.Logits(0, i)...)
	}
	return out
}
