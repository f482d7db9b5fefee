package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/tree"
)

// Frozen is a target from which a head learns: it computes taps and distributions as in serving,
// and is not trained.
type Frozen struct {
	*model.Model
	Taps     nn.Mat    // of the last pass, joined
	Features *Features // where the rows of texts are kept; nil: they are not

	fingerprint string
	layers      []int // whose outputs the head reads
	exec        *nn.Exec
	caches      []*nn.Cache
	forest      nn.Forest
	tree        tree.Tree
	rows        nn.Buffer
	buf         nn.Buffer
	bufs        nn.BlockBuffers
}

// NewFrozen freezes a model of which a head reads some layers: 0 is the embedding, i the output of
// block i.
func NewFrozen(m *model.Model, layers []int) Frozen {
	return Frozen{Model: m, layers: layers, exec: nn.NewExec(m.Pool())}
}

// Read runs texts of one length, one after the other, and keeps the taps of all tokens. It returns
// the rows before the last norm.
func (f *Frozen) Read(texts [][]int32) nn.Mat {
	n := len(texts) * len(texts[0])
	f.Taps = f.buf.Mat(n, len(f.layers)*f.Config.Hidden)
	x := f.exec.Mat(&f.rows, n, f.Config.Hidden)
	if f.Features == nil {
		f.compute(texts, x)
		return x
	}
	if f.fingerprint == "" {
		f.fingerprint = FingerprintModel(f.Model)
	}
	if !f.each(texts, x, f.Features.read) {
		f.compute(texts, x)
		f.each(texts, x, func(path string, rows nn.Mat) bool {
			f.Features.write(path, rows)
			return true
		})
	}
	return x
}

// featureBytes returns the size of the files with the features of the given number of tokens: of
// the layers that the head reads, and of the last layer.
func (f *Frozen) featureBytes(tokens int) int64 {
	layers := len(f.layers)
	if !slices.Contains(f.layers, f.Config.Layers) {
		layers++
	}
	return int64(tokens) * int64(layers) * int64(4*f.Config.Hidden)
}

// each calls do with the file and the rows of every text and layer, as long as it returns true, and
// returns its last result.
func (f *Frozen) each(texts [][]int32, x nn.Mat, do func(path string, rows nn.Mat) bool) bool {
	length, width := len(texts[0]), f.Config.Hidden
	for i, text := range texts {
		if !do(f.Features.path(f.fingerprint, text, f.Config.Layers), x.Slice(i*length, (i+1)*length)) {
			return false
		}
		taps := f.Taps.Slice(i*length, (i+1)*length)
		for t, layer := range f.layers {
			if !do(f.Features.path(f.fingerprint, text, layer), taps.Columns(t*width, (t+1)*width)) {
				return false
			}
		}
	}
	return true
}

// compute is Read by the target.
func (f *Frozen) compute(texts [][]int32, x nn.Mat) {
	var tokens []int32
	f.forest.Reset()
	for i, text := range texts {
		if i == len(f.caches) {
			f.caches = append(f.caches, f.NewCache())
		}
		tokens = append(tokens, text...)
		f.tree.ResetChain(text)
		f.forest.Add(f.caches[i], &f.tree, 0)
		f.caches[i].Reserve(0, len(text))
	}
	_ = f.RunLayers(f.exec, &f.forest, tokens, x, &f.bufs, f) // errors are an observer's, and Layer has none
}

// Halfway turns the rows that a block reads of the last text read into the input of its MLP.
func (f *Frozen) Halfway(block int, x nn.Mat) {
	b := &f.Blocks[block]
	f.exec.Attention(b, block, &f.forest, nn.Source{X: x, Norm: &b.AttnNorm}, x, &f.bufs)
}

// Layer copies the residual stream into the columns of the taps that belong to the layer.
func (f *Frozen) Layer(layer int, x nn.Mat) error {
	for t, l := range f.layers {
		if l == layer {
			dst := f.Taps.Columns(t*x.Cols, (t+1)*x.Cols)
			for i := range x.Rows {
				copy(dst.Row(i), x.Row(i))
			}
		}
	}
	return nil
}

// Distributions fills s with the target's distributions after tokens [from, to) of each of the
// texts, where x is their rows from Read and head the target's own head, or some rows of it.
func (f *Frozen) Distributions(s *autograd.Soft, x nn.Mat, texts, from, to int, head *nn.Linear) {
	places, length := to-from, x.Rows/texts
	s.Reset(texts*places, head.W.Out())
	for i := range texts {
		s.Fill(f.exec, i*places, nn.Source{X: x.Slice(i*length+from, i*length+to), Norm: &f.Norm}, head)
	}
}

// Output is the target's output over the tokens of a draft vocabulary.
type Output struct {
	Rows output.Rows
	W    *gemm.Matrix // the target's rows; nil: all of them, in the target's own form
	Says *nn.Linear   // these rows, with the target's other operations on logits
}

// OutputOf packs the rows of some tokens of the output head, for products of a kind; without
// tokens, it is the whole head.
func (f *Frozen) OutputOf(tokens []int32, kind gemm.Type) (Output, error) {
	if tokens == nil {
		return Output{Says: &f.Head}, nil
	}
	params := autograd.NewParams(kind) // which are not trained
	w, err := params.Matrix("output.weight", len(tokens), f.Config.Hidden)
	if err != nil {
		return Output{}, err
	}
	o := Output{output.RowsOf(tokens), w, &nn.Linear{W: w, Scale: f.Head.Scale, Cap: f.Head.Cap}}
	for i, t := range tokens {
		f.Head.W.Row(params.Of(w).Mat().Row(i), int(t))
		if f.Head.Bias != nil {
			o.Says.Bias = append(o.Says.Bias, f.Head.Bias[t])
		}
	}
	params.Pack(autograd.NewProducts(f.Pool(), kind))
	return o, nil
}

// KindOf returns how products of a precision, which a recipe's check has accepted, are computed.
func KindOf(precision string) gemm.Type {
	if precision == "bf16" {
		return gemm.BF16
	}
	return gemm.F32
}

// linears returns the products of a block; of its experts, as many as a row uses.
func linears(b *nn.Block) []*nn.Linear {
	list, mlps := []*nn.Linear{&b.Out}, []nn.MLP{b.MLP}
	for i := range b.QKV {
		list = append(list, &b.QKV[i])
	}
	if x := b.Experts; x != nil {
		list, mlps = append(list, &x.Router), x.MLPs[:x.Used]
	}
	for i := range mlps {
		list = append(list, &mlps[i].Up, &mlps[i].Down)
		if mlps[i].Gate != nil {
			list = append(list, mlps[i].Gate)
		}
	}
	return slices.DeleteFunc(list, func(l *nn.Linear) bool { return l.W == nil }) // of halves that it lacks
}

// lastProduct returns the weights of a product that adds to the residual stream.
func lastProduct(b *nn.Block) *gemm.Matrix {
	switch {
	case b.Out.W != nil:
		return b.Out.W
	case b.Experts != nil:
		return b.Experts.MLPs[0].Down.W
	}
	return b.MLP.Down.W
}

// FingerprintModel identifies a model by its shape, its tokens, and some of its weights.
func FingerprintModel(m *model.Model) string {
	h := sha256.New()
	var shape any
	if b, err := json.Marshal(m.Config); err == nil && json.Unmarshal(b, &shape) == nil {
		_ = json.NewEncoder(h).Encode(withoutZeros(shape))
	}
	if m.Tokenizer != nil {
		fmt.Fprintln(h, m.Tokenizer.VocabSize(), m.Tokenizer.Text(int32(m.Tokenizer.VocabSize()-1)))
	}
	for _, w := range []*gemm.Matrix{m.Head.W, lastProduct(&m.Blocks[0]), lastProduct(&m.Blocks[len(m.Blocks)-1])} {
		row := make([]float32, w.In())
		for i := range 16 {
			w.Row(row, i*w.Out()/16)
			fmt.Fprintln(h, row)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// withoutZeros returns a JSON value without its zero or empty parts: a field that a later version
// of grove adds to a shape changes nothing for models that do not use it, so their earlier results
// remain valid.
func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			field = withoutZeros(field)
			v[name] = field
			if field == nil {
				delete(v, name)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	case string, float64, bool:
		if reflect.ValueOf(v).IsZero() {
			return nil
		}
	}
	return v
}

// FingerprintFile identifies the contents of a file.
func FingerprintFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), err
}

// TapsFor returns the layers that a head reads of a target with the given number of layers: low,
// middle and high ones, as EAGLE-3's authors choose them.
func TapsFor(layers int) []int {
	switch layers {
	case 1:
		return []int{0, 1}
	case 2, 3:
		return []int{layers - 2, layers - 1, layers}
	}
	return []int{1, layers / 2, layers - 1}
}

// Spread returns n numbers from first to last, spaced as widely as possible; all of them if there
// are fewer.
func Spread(first, last, n int) (list []int) {
	n = min(n, last-first+1)
	for i := range n {
		list = append(list, first+(last-first)*i/max(1, n-1))
	}
	return list
}

// CanCopy reports whether layers of a head can begin as blocks of a target; attention requires the
// head's attention to be as wide as the target's.
func CanCopy(m *model.Model, attention bool, blocks ...int) bool {
	f := Frozen{Model: m}
	parts := []string{"ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}
	if attention {
		parts = append(parts, "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output")
	}
	if attention && HasNorms(m) {
		parts = append(parts, "attn_q_norm", "attn_k_norm")
	}
	for _, b := range blocks {
		for _, part := range parts {
			if _, ok := f.weights(fmt.Sprintf("blk.%d.%s.weight", b, part)); !ok {
				return false
			}
		}
	}
	_, ok := f.weights("output_norm.weight")
	return ok
}

// HasNorms reports whether a target's attention normalises queries or keys, as Qwen 3's does and Llama's does not.
func HasNorms(m *model.Model) bool {
	return slices.ContainsFunc(m.Blocks, func(b nn.Block) bool { return b.Attn.QNorm != nil || b.Attn.KNorm != nil })
}

// weights returns the elements of a tensor of a target with which heads begin, by its name in GGUF. There are
// none unless the target's blocks are like llama's: each half after an RMS norm, without one within, with
// separate queries, keys and values, and an MLP with a gate. Queries and keys come in halves, the form in
// which heads rotate them.
func (f *Frozen) weights(name string) (*autograd.Param, bool) {
	vector := func(norm *nn.Norm) (*autograd.Param, bool) {
		if norm == nil || norm.Center || norm.Weight == nil {
			return nil, false
		}
		return &autograd.Param{Name: name, Rows: 1, Cols: len(norm.Weight), Vector: true, Data: norm.Weight}, true
	}
	if name == "output_norm.weight" {
		return vector(&f.Norm)
	}
	var block int
	var part string
	if n, err := fmt.Sscanf(name, "blk.%d.%s", &block, &part); n < 2 || err != nil || block < 0 ||
		block >= len(f.Blocks) {
		return nil, false
	}
	b := &f.Blocks[block]
	if b.Parallel || b.AttnPost != nil || b.MLPPost != nil || len(b.QKV) != 3 || b.Experts != nil ||
		b.ParallelRecurrent != nil || b.AttnInner != nil || b.MLP.Gate == nil || b.MLP.Act != nn.None {
		return nil, false
	}
	part = strings.TrimSuffix(part, ".weight")
	if strings.HasPrefix(part, "attn_") && part != "attn_norm" && !f.copies(&b.Attn) {
		return nil, false
	}
	row := func(i int) int { return i }
	switch part {
	case "attn_norm":
		return vector(&b.AttnNorm)
	case "ffn_norm":
		return vector(&b.MLPNorm)
	case "attn_q_norm":
		return vector(b.Attn.QNorm)
	case "attn_k_norm":
		return vector(b.Attn.KNorm)
	case "attn_q", "attn_k":
		if f.Config.Rope.Neighbours {
			row = model.Halves(f.Config.HeadDim)
		}
	}
	l := map[string]*nn.Linear{"attn_q": &b.QKV[0], "attn_k": &b.QKV[1], "attn_v": &b.QKV[2], "attn_output": &b.Out,
		"ffn_gate": b.MLP.Gate, "ffn_up": &b.MLP.Up, "ffn_down": &b.MLP.Down}[part]
	if l == nil || l.Bias != nil || l.Scale != 0 || l.Cap != 0 {
		return nil, false
	}
	p := &autograd.Param{Name: name, Rows: l.W.Out(), Cols: l.W.In(), Data: make([]float32, l.W.Out()*l.W.In())}
	for i := range p.Rows {
		l.W.Row(p.Mat().Row(i), row(i))
	}
	return p, true
}

// copies reports whether a head's layers, which rotate all dimensions of queries and keys, attend
// as the target's do if given its weights.
func (f *Frozen) copies(a *nn.Attention) bool {
	for _, n := range []*nn.Norm{a.QNorm, a.KNorm} {
		if n != nil && len(n.Weight) != a.Dim {
			return false
		}
	}
	return a.Rope != nil && f.Config.Rope.Dims == a.Dim && a.Dim == f.Config.HeadDim && a.Heads == f.Config.Heads &&
		a.KVHeads == f.Config.KVHeads && a.Scale == 0 && !a.Gated && !a.Reads
}
