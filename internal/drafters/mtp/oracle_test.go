package mtp_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/nn"
)

// oracle computes a layer by its definition, in f64 and row by row, from a folder with the names of
// MiMo or of Qwen. It shares no code with the network.
type oracle struct {
	Heads   int     `json:"num_attention_heads"`
	KVHeads int     `json:"num_key_value_heads"`
	Dim     int     `json:"head_dim"`
	Hidden  int     `json:"hidden_size"`
	Eps     float64 `json:"rms_norm_eps"`
	Base    float64 `json:"rope_theta"`

	mimo    bool
	tensors map[string][]float64
	last    *nn.Norm // the target's
	output  [][]float64

	keys, values [][]float64 // of the rows so far
	places       []int
}

func openOracle(t Fataler, dir string) *oracle {
	o := &oracle{tensors: map[string][]float64{}}
	if err := json.Unmarshal(Must(os.ReadFile(filepath.Join(dir, "config.json")))(t), o); err != nil {
		t.Fatal(err)
	}
	if o.Dim == 0 {
		o.Dim = o.Hidden / o.Heads
	}
	f := Must(safetensors.OpenFolder(dir))(t)
	defer f.Close()
	for _, info := range f.Tensors {
		name, mimo := strings.CutPrefix(info.Name, "model.mtp_layers.0.")
		o.mimo = o.mimo || mimo
		if !mimo {
			name = strings.TrimPrefix(strings.TrimPrefix(info.Name, "mtp."), "layers.0.")
		}
		for _, v := range Must(Must(f.Load(info.Name))(t).Float32s())(t) {
			o.tensors[name] = append(o.tensors[name], float64(v))
		}
	}
	return o
}

func widen(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

func norm(x, weight []float64, eps float64) (y []float64) {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		y = append(y, v/math.Sqrt(sum/float64(len(x))+eps)*weight[i])
	}
	return y
}

// norm computes RMSNorm with the weights called name.
func (o *oracle) norm(x []float64, name string) []float64 {
	return norm(x, o.tensors[name+".weight"], o.Eps)
}

// linear computes W·x, plus a bias if there is one.
func (o *oracle) linear(x []float64, name string) (y []float64) {
	w, bias := o.tensors[name+".weight"], o.tensors[name+".bias"]
	for i := range len(w) / len(x) {
		v := 0.0
		for j := range x {
			v += w[i*len(x)+j] * x[j]
		}
		if bias != nil {
			v += bias[i]
		}
		y = append(y, v)
	}
	return y
}

// turned returns the heads of queries or keys, normalised if the layer does so, and rotated in halves.
func (o *oracle) turned(x []float64, name string, place int) (y []float64) {
	for h := range slices.Chunk(x, o.Dim) {
		h = slices.Clone(h)
		if w := o.tensors["self_attn."+name+".weight"]; w != nil {
			h = norm(h, w, o.Eps)
		}
		for i := range o.Dim / 2 {
			a := float64(place) * math.Pow(o.Base, -2*float64(i)/float64(o.Dim))
			u, v := h[i], h[i+o.Dim/2]
			h[i], h[i+o.Dim/2] = u*math.Cos(a)-v*math.Sin(a), v*math.Cos(a)+u*math.Sin(a)
		}
		y = append(y, h...)
	}
	return y
}

// feature returns what the layer reads of the target's last hidden state.
func (o *oracle) feature(state []float64) []float64 {
	if o.mimo {
		return state
	}
	return norm(state, widen(o.last.Weight), float64(o.last.Eps))
}

// row appends a row made of a token's embedding and a feature. It returns the state, which is the
// feature of the rows after it, and the log-probabilities of the next token.
func (o *oracle) row(embedding, feature []float64, place int) (state, logs []float64) {
	var x []float64
	if o.mimo {
		x = append(o.norm(feature, "hidden_layernorm"), o.norm(embedding, "token_layernorm")...)
		x = o.linear(x, "input_proj")
	} else {
		x = append(o.norm(embedding, "pre_fc_norm_embedding"), o.norm(feature, "pre_fc_norm_hidden")...)
		x = o.linear(x, "fc")
	}
	in := o.norm(x, "input_layernorm")
	q := o.turned(o.linear(in, "self_attn.q_proj"), "q_norm", place)
	o.keys = append(o.keys, o.turned(o.linear(in, "self_attn.k_proj"), "k_norm", place))
	o.values, o.places = append(o.values, o.linear(in, "self_attn.v_proj")), append(o.places, place)
	var out []float64
	for h := range o.Heads {
		kv := h / (o.Heads / o.KVHeads) * o.Dim
		var weights []float64
		sum, y := 0.0, make([]float64, o.Dim)
		for _, key := range o.keys {
			score := 0.0
			for d := range o.Dim {
				score += q[h*o.Dim+d] * key[kv+d]
			}
			weights = append(weights, math.Exp(score/math.Sqrt(float64(o.Dim))))
			sum += weights[len(weights)-1]
		}
		for j, value := range o.values {
			for d := range y {
				y[d] += weights[j] / sum * value[kv+d]
			}
		}
		out = append(out, y...)
	}
	add := func(y []float64) {
		for i := range x {
			x[i] += y[i]
		}
	}
	add(o.linear(out, "self_attn.o_proj"))
	in = o.norm(x, "post_attention_layernorm")
	gate, up := o.linear(in, "mlp.gate_proj"), o.linear(in, "mlp.up_proj")
	for i, v := range gate {
		up[i] *= v / (1 + math.Exp(-v))
	}
	add(o.linear(up, "mlp.down_proj"))
	state = o.norm(x, map[bool]string{true: "final_layernorm", false: "norm"}[o.mimo])
	total := 0.0
	for _, w := range o.output {
		v := 0.0
		for i := range w {
			v += w[i] * state[i]
		}
		logs = append(logs, v)
		total += math.Exp(v)
	}
	for i := range logs {
		logs[i] -= math.Log(total)
	}
	return state, logs
}

// drop forgets the rows after the first n.
func (o *oracle) drop(n int) {
	o.keys = o.keys[:n]
	o.values = o.values[:n]
	o.places = o.places[:n]
}
