// Package reference computes the logits of Llama, Qwen2 and Qwen3 models with plain loops, for
// readers and for comparison.
//
// Input: a GGUF file and a text as tokens. Output: logits. There are no caches, batches, kernels or
// threads: each position of a text is computed from scratch, in float64, in the order in which the
// papers write it. Package model computes the same from the same files, but fast.
package reference

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// Model holds a model's sizes and weights. A matrix is a list of rows, one for each output.
type Model struct {
	// query heads; key/value heads; width of a head; how many of a head's dimensions are rotated
	heads, kvHeads, headDim, rotated int
	epsilon, base                    float64 // of the norms; of the angles
	neighbours                       bool    // rotated pairs are dimensions 2i and 2i+1, not i and i+rotated/2
	embedding, output                [][]float32
	norm, frequencies                []float32 // of the output; Llama 3.1's divisors of the angles
	layers                           []layer
}

type layer struct {
	attnNorm, ffnNorm, qNorm, kNorm []float32 // only Qwen3 has qNorm and kNorm
	q, k, v, o, gate, up, down      [][]float32
	qBias, kBias, vBias             []float32 // only Qwen2 has these
}

// Load reads a model. It returns an error if the file has another architecture or lacks a tensor.
func Load(f *gguf.File) (*Model, error) {
	keys := ggufkeys.Of(f)
	arch := keys.String("general.architecture")
	if arch != "llama" && arch != "qwen2" && arch != "qwen3" {
		return nil, fmt.Errorf("%s: general.architecture is %q: the reference computes llama, qwen2 and qwen3", f.Path, arch)
	}
	m := &Model{neighbours: arch == "llama"}
	m.heads = keys.Int(arch + ".attention.head_count")
	m.kvHeads = keys.Int(arch+".attention.head_count_kv", m.heads)
	m.headDim = keys.Int(arch+".attention.key_length", keys.Int(arch+".embedding_length")/max(m.heads, 1))
	m.rotated = keys.Int(arch+".rope.dimension_count", m.headDim)
	m.epsilon = keys.Float(arch + ".attention.layer_norm_rms_epsilon")
	m.base = keys.Float(arch+".rope.freq_base", 10_000)
	layers := keys.Int(arch + ".block_count")
	if err := keys.Err(); err != nil {
		return nil, err
	}
	var failed error
	vector := func(name string, optional bool) []float32 {
		t, ok := f.Tensor(name)
		if !ok && optional || failed != nil {
			return nil
		}
		values, err := t.Float32s()
		if !ok {
			err = fmt.Errorf("%s: tensor %s is missing", f.Path, name)
		}
		failed = err
		return values
	}
	matrix := func(name string) (rows [][]float32) {
		values := vector(name, false)
		t, _ := f.Tensor(name)
		for i := range len(values) / max(t.Cols(), 1) {
			rows = append(rows, values[i*t.Cols():(i+1)*t.Cols()])
		}
		return rows
	}
	m.embedding = matrix("token_embd.weight")
	m.output = m.embedding // tied, unless the file has an output matrix
	if _, ok := f.Tensor("output.weight"); ok {
		m.output = matrix("output.weight")
	}
	m.norm = vector("output_norm.weight", false)
	m.frequencies = vector("rope_freqs.weight", true)
	for i := range layers {
		b := fmt.Sprintf("blk.%d.", i)
		m.layers = append(m.layers, layer{
			attnNorm: vector(b+"attn_norm.weight", false), ffnNorm: vector(b+"ffn_norm.weight", false),
			qNorm: vector(b+"attn_q_norm.weight", true), kNorm: vector(b+"attn_k_norm.weight", true),
			q: matrix(b + "attn_q.weight"), k: matrix(b + "attn_k.weight"), v: matrix(b + "attn_v.weight"), o: matrix(b +
				"attn_output.weight"),
			gate: matrix(b + "ffn_gate.weight"), up: matrix(b + "ffn_up.weight"), down: matrix(b + "ffn_down.weight"),
			qBias: vector(b+"attn_q.bias", true), kBias: vector(b+"attn_k.bias", true), vBias: vector(b+"attn_v.bias", true),
		})
	}
	return m, failed
}

// Logits computes the logits after each token of a text: [tokens][vocabulary].
func (m *Model) Logits(tokens []int32) (logits [][]float64) {
	residual := make([][]float64, len(tokens)) // [tokens][hidden]
	for i, token := range tokens {
		for _, x := range m.embedding[token] {
			residual[i] = append(residual[i], float64(x))
		}
	}
	for _, l := range m.layers {
		var keys, values [][]float64 // of the positions so far
		for i, x := range residual {
			h := normalize(x, l.attnNorm, m.epsilon)
			q := multiply(l.q, h, l.qBias)
			k := multiply(l.k, h, l.kBias)
			v := multiply(l.v, h, l.vBias)
			m.rotate(q, l.qNorm, i)
			m.rotate(k, l.kNorm, i)
			keys, values = append(keys, k), append(values, v)
			add(x, multiply(l.o, m.attend(q, keys, values), nil))
		}
		for _, x := range residual {
			h := normalize(x, l.ffnNorm, m.epsilon)
			gate, up := multiply(l.gate, h, nil), multiply(l.up, h, nil)
			for j, g := range gate {
				up[j] *= g / (1 + math.Exp(-g)) // SiLU
			}
			add(x, multiply(l.down, up, nil))
		}
	}
	for _, x := range residual {
		logits = append(logits, multiply(m.output, normalize(x, m.norm, m.epsilon), nil))
	}
	return logits
}

// attend returns softmax(q·k/√headDim)·v for each head, over all positions given. Several query
// heads share one key/value head.
func (m *Model) attend(q []float64, keys, values [][]float64) []float64 {
	out := make([]float64, len(q))
	for head := range m.heads {
		own := head * m.headDim
		shared := head / (m.heads / m.kvHeads) * m.headDim
		weights := make([]float64, len(keys))
		sum := 0.0
		largest := math.Inf(-1)
		for i, k := range keys {
			for d := range m.headDim {
				weights[i] += q[own+d] * k[shared+d] / math.Sqrt(float64(m.headDim))
			}
			largest = max(largest, weights[i])
		}
		for i := range weights {
			weights[i] = math.Exp(weights[i] - largest)
			sum += weights[i]
		}
		for i, v := range values {
			for d := range m.headDim {
				out[own+d] += weights[i] / sum * v[shared+d]
			}
		}
	}
	return out
}

// rotate normalises every head of x, if there is a norm, and rotates its pairs by the position's angles.
func (m *Model) rotate(x []float64, norm []float32, position int) {
	for start := 0; start < len(x); start += m.headDim {
		head := x[start : start+m.headDim]
		if norm != nil {
			copy(head, normalize(head, norm, m.epsilon))
		}
		for i := range m.rotated / 2 {
			a, b := i, i+m.rotated/2
			if m.neighbours {
				a, b = 2*i, 2*i+1
			}
			angle := float64(position) * math.Pow(m.base, -2*float64(i)/float64(m.rotated))
			if m.frequencies != nil {
				angle /= float64(m.frequencies[i])
			}
			sin, cos := math.Sincos(angle)
			head[a], head[b] = head[a]*cos-head[b]*sin, head[a]*sin+head[b]*cos
		}
	}
}

// normalize divides x by its root mean square, and multiplies by weights.
func normalize(x []float64, weights []float32, epsilon float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	out, scale := make([]float64, len(x)), 1/math.Sqrt(sum/float64(len(x))+epsilon)
	for i, v := range x {
		out[i] = v * scale * float64(weights[i])
	}
	return out
}

// multiply returns rows·x, plus bias if there is one.
func multiply(rows [][]float32, x []float64, bias []float32) []float64 {
	out := make([]float64, len(rows))
	for i, row := range rows {
		for j, w := range row {
			out[i] += float64(w) * x[j]
		}
		if bias != nil {
			out[i] += float64(bias[i])
		}
	}
	return out
}

func add(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}
