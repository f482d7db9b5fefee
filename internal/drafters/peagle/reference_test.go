package peagle_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// reference computes a head in the plainest way, in float64, from a folder of vLLM's speculators by
// the names used there. It was written from the description of the format, and shares no code with
// the network.
type reference struct {
	NormBeforeResidual bool    `json:"norm_before_residual"`
	NormBeforeFC       bool    `json:"norm_before_fc"`
	FCNorm             bool    `json:"fc_norm"`
	Mask               int32   `json:"mask_token_id"`
	Taps               []int32 `json:"eagle_aux_hidden_state_layer_ids"`
	Layer              struct {
		Type    string  `json:"model_type"`
		Hidden  int     `json:"hidden_size"`
		Layers  int     `json:"num_hidden_layers"`
		Heads   int     `json:"num_attention_heads"`
		KVHeads int     `json:"num_key_value_heads"`
		Dim     int     `json:"head_dim"`
		Eps     float64 `json:"rms_norm_eps"`
		Base    float64 `json:"rope_theta"`
	} `json:"transformer_layer_config"`

	tensors map[string][]float64
}

func openReference(t Fataler, dir string) *reference {
	ref := &reference{tensors: map[string][]float64{}}
	if err := json.Unmarshal(Must(os.ReadFile(filepath.Join(dir, "config.json")))(t), ref); err != nil {
		t.Fatal(err)
	}
	f := Must(safetensors.OpenFolder(dir))(t)
	defer f.Close()
	for _, info := range f.Tensors {
		if x, _ := f.Tensor(info.Name); x.Type == tensor.F32 {
			for _, v := range Must(Must(x.ReadAll())(t).Float32s())(t) {
				ref.tensors[x.Name] = append(ref.tensors[x.Name], float64(v))
			}
		}
	}
	return ref
}

// norm computes RMSNorm.
func (ref *reference) norm(x []float64, weight string) (y []float64) {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		y = append(y, v/math.Sqrt(sum/float64(len(x))+ref.Layer.Eps)*ref.tensors[weight+".weight"][i])
	}
	return y
}

// linear computes W·x, plus a bias if there is one.
func (ref *reference) linear(x []float64, name string) (y []float64) {
	w, bias := ref.tensors[name+".weight"], ref.tensors[name+".bias"]
	for o := range len(w) / len(x) {
		v := 0.0
		for i := range x {
			v += w[o*len(x)+i] * x[i]
		}
		if bias != nil {
			v += bias[o]
		}
		y = append(y, v)
	}
	return y
}

func add(x, y []float64) (sum []float64) {
	for i := range x {
		sum = append(sum, x[i]+y[i])
	}
	return sum
}

// feature returns what fc makes of the joined taps of a place, or of mask_hidden.
func (ref *reference) feature(taps []float64) []float64 {
	if ref.NormBeforeFC {
		taps = ref.norm(taps, "input_norm")
	}
	if h := ref.Layer.Hidden; ref.FCNorm {
		var all []float64
		for i := range ref.Taps {
			all = append(all, ref.norm(taps[i*h:(i+1)*h], "fc_norm."+strconv.Itoa(i))...)
		}
		taps = all
	}
	return ref.linear(taps, "fc")
}

// rotate rotates the pairs (i, i+dim/2) of a head's vector.
func (ref *reference) rotate(x []float64, position int) []float64 {
	y, half := slices.Clone(x), len(x)/2
	for i := range half {
		a := float64(position) * math.Pow(ref.Layer.Base, -2*float64(i)/float64(len(x)))
		y[i], y[i+half] = x[i]*math.Cos(a)-x[i+half]*math.Sin(a), x[i+half]*math.Cos(a)+x[i]*math.Sin(a)
	}
	return y
}

// refRow is a row of a pass: row d of an anchor's block, where row 0 is the anchor's entry.
type refRow struct {
	anchor, depth  int
	embed, feature []float64
}

// sees is the mask in training: entries up to the anchor, and the block's rows so far.
func (r *refRow) sees(k *refRow) bool {
	return k.depth == 0 && k.anchor <= r.anchor || k.anchor == r.anchor && k.depth <= r.depth
}

// logits returns those of all rows.
func (ref *reference) logits(rows []refRow) (out [][]float64) {
	l := &ref.Layer
	states := make([][]float64, len(rows))
	for n := range l.Layers {
		name := "layers." + strconv.Itoa(n) + "."
		inputs, residuals := make([][]float64, len(rows)), make([][]float64, len(rows))
		for i, r := range rows {
			if n > 0 {
				inputs[i], residuals[i] = ref.norm(states[i], name+"input_layernorm"), states[i]
				continue
			}
			g := ref.norm(r.feature, name+"hidden_norm")
			inputs[i] = append(ref.norm(r.embed, name+"input_layernorm"), g...)
			residuals[i] = r.feature
			if ref.NormBeforeResidual {
				residuals[i] = g
			}
		}
		heads := func(kind string, i, heads int) (list [][]float64) {
			all := ref.linear(inputs[i], name+"self_attn."+kind+"_proj")
			for h := range heads {
				x := all[h*l.Dim : (h+1)*l.Dim]
				if l.Type == "qwen3" && kind != "v" {
					x = ref.norm(x, name+"self_attn."+kind+"_norm")
				}
				if kind != "v" {
					x = ref.rotate(x, rows[i].anchor+rows[i].depth)
				}
				list = append(list, x)
			}
			return list
		}
		var keys, values [][][]float64
		for i := range rows {
			keys, values = append(keys, heads("k", i, l.KVHeads)), append(values, heads("v", i, l.KVHeads))
		}
		for i := range rows {
			var mixed []float64
			for h, q := range heads("q", i, l.Heads) {
				kv := h / (l.Heads / l.KVHeads)
				total := 0.0
				mix := make([]float64, l.Dim)
				for k := range rows {
					if !rows[i].sees(&rows[k]) {
						continue
					}
					score := 0.0
					for d := range q {
						score += q[d] * keys[k][kv][d]
					}
					w := math.Exp(score / math.Sqrt(float64(l.Dim)))
					total += w
					for d := range mix {
						mix[d] += w * values[k][kv][d]
					}
				}
				for d := range mix {
					mixed = append(mixed, mix[d]/total)
				}
			}
			x := add(residuals[i], ref.linear(mixed, name+"self_attn.o_proj"))
			y := ref.norm(x, name+"post_attention_layernorm")
			gate, up := ref.linear(y, name+"mlp.gate_proj"), ref.linear(y, name+"mlp.up_proj")
			for j, v := range gate {
				up[j] *= v / (1 + math.Exp(-v))
			}
			states[i] = add(x, ref.linear(up, name+"mlp.down_proj"))
		}
	}
	for _, x := range states {
		out = append(out, ref.linear(ref.norm(x, "norm"), "lm_head"))
	}
	return out
}

// Heads in the format of vLLM's speculators compute what the format's description says, to 1e-4 of
// the largest logit: all blocks of a text in one pass, as in training, and the chain that the
// drafter makes of the last one.
func TestReference(t *testing.T) {
	m := OpenTarget(t, 400)
	dir := t.TempDir()
	cases.Check(t, 40, func(r *rapid.T) {
		seed := rapid.Uint64Range(0, 60).Draw(r, "head")
		c := synthetic.Config[peagle.Config](rand.New(rand.NewPCG(seed, 3)), "peagle", m.Config, tensor.F32)
		c.FCNorm = c.FCNorm && !c.NormBeforeFC
		weights := Must(synthetic.Tensors(&c, tensor.F32, 3*seed))(r)
		if err := headfile.WriteSpeculators(dir, &c, weights, synthetic.Tokens(&c, seed), m.Config); err != nil {
			r.Fatal(err)
		}
		ref := openReference(r, dir)
		n := Must(peagle.Open(registry.Head{Name: dir}, As(m)))(r)
		text := rapid.SliceOfN(rapid.Int32Range(0, Vocab-1), 2, 9).Draw(r, "text")

		embed := func(token int32) (x []float64) {
			row := make([]float32, n.Hidden)
			n.Base.Embed.Row(row, int(token))
			for _, v := range row {
				x = append(x, float64(v))
			}
			return x
		}
		var rows, masks []refRow
		var from []int32
		pass := Pass{Text: 1, Hidden: n.Hidden, Tree: tree.Chain(text)}
		taps := nn.NewMat(len(text)-1, n.Width())
		for e := range taps.Rows {
			var joined []float64
			for i := range n.Taps {
				tap := pass.Tap(i, 0, e)
				copy(taps.Row(e)[i*n.Hidden:], tap)
				for _, v := range tap {
					joined = append(joined, float64(v))
				}
			}
			rows = append(rows, refRow{e, 0, embed(text[e+1]), ref.feature(joined)})
			from = append(from, int32(e))
		}
		b := tree.Chain(text[1:])
		for e := range taps.Rows {
			below := rapid.IntRange(0, n.Depths-1).Draw(r, "mask rows")
			if e == taps.Rows-1 {
				below = n.Depths - 1
			}
			n.Branch(b, e, below)
			for d := range below {
				masks = append(masks, refRow{e, d + 1, embed(ref.Mask), ref.feature(ref.tensors["mask_hidden"])})
				from = append(from, int32(taps.Rows+d))
			}
		}
		want := ref.logits(append(rows, masks...))

		var f nn.Forest
		var bufs peagle.Buffers
		pages, e := n.Base.Pages(), nn.NewExec(m.Pool())
		cache := pages.NewCache()
		defer cache.Free()
		cache.Reserve(0, b.Len())
		f.Add(cache, b, 0)
		x, got := nn.NewMat(len(from), n.Hidden), nn.NewMat(len(from), n.DraftVocab)
		n.Run(e, &f, text[1:], taps, from, x, &bufs)
		e.Linear(n.Base.Output(x), nn.Proj{Linear: &n.Base.Head, Dst: got})
		for i := range want {
			most := 1.0
			for _, v := range want[i] {
				most = max(most, math.Abs(v))
			}
			for j, v := range want[i] {
				if math.Abs(v-float64(got.Row(i)[j])) > 1e-4*most {
					r.Fatalf("%s: row %d of %d, logit %d is %g, want %g", n.Describe(true), i, len(want), j,
						got.Row(i)[j], v)
				}
			}
		}

		d := newDrafter(r, peagle.Options{Tree: onepass.Chain}, n, m)
		s := Begin(r, d, draft.Options{}, 1)
		defer s.Close()
		Commit(r, d, s.Prompt(text[:len(text)-1], n.Hidden, true))
		s.Root = text[len(text)-1]
		q := s.Request(40, 40, nil)
		Propose(r, d, q)
		last := append(want[taps.Rows-1:taps.Rows:taps.Rows], want[len(want)-n.Depths+1:]...)
		for i, token := range q.Tree.Token[1:] {
			at := int(token)
			if n.Base.Tokens != nil {
				at = slices.Index(n.Base.Tokens, token)
			}
			sum := 0.0
			for _, v := range last[i] {
				sum += math.Exp(v - last[i][at])
			}
			if slices.Max(last[i]) > last[i][at]+1e-3 || math.Abs(float64(q.Tree.LogProb[i+1])+math.Log(sum)) > 1e-2 {
				r.Fatalf("%s: depth %d of the chain is token %d with log-probability %g, want %g", n.Describe(true),
					i+1, token, q.Tree.LogProb[i+1], -math.Log(sum))
			}
		}
	})
}
