package headfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// Parts lists the tensors of a head's network and where they belong in it. The one list says which
// tensors a file must have, loads a network, and visits its weights.
type Parts []Part

// Part is one or more of the tensors.
type Part interface {
	shapes(s Shapes)
	load(w model.Weights) error
	weights(yield func(Weight))
}

// Load loads the weights of all parts.
func (p Parts) Load(w model.Weights) error {
	for _, part := range p {
		if err := part.load(w); err != nil {
			return err
		}
	}
	return nil
}

// Weights calls yield for every tensor that belongs to the head itself.
func (p Parts) Weights(yield func(Weight)) {
	for _, part := range p {
		part.weights(yield)
	}
}

// Shapes returns the shapes of the tensors.
func (p Parts) Shapes() Shapes {
	s := Shapes{}
	for _, part := range p {
		part.shapes(s)
	}
	return s
}

// Weight is a tensor of a head: a matrix, a vector, or a table of Rows rows and Cols columns.
type Weight struct {
	Name       string
	Matrix     *gemm.Matrix
	Vector     []float32
	Table      nn.Table
	Rows, Cols int
	Fixed      bool // it is not trained
}

// Each calls f for every row. The slice is reused.
func (w *Weight) Each(f func(i int, row []float32)) {
	rows := w.Rows
	cols := w.Cols
	table := w.Table
	switch {
	case w.Vector != nil:
		f(0, w.Vector)
		return
	case w.Matrix != nil:
		rows = w.Matrix.Out()
		cols = w.Matrix.In()
		table = w.Matrix
	}
	row := make([]float32, cols)
	for i := range rows {
		table.Row(row, i)
		f(i, row)
	}
}

// Linear is the product l, whose matrix is out × in. If bias is set, it may have a bias.
func Linear(name string, l *nn.Linear, out, in int, bias bool) Part {
	return &linear{name, l, out, in, bias}
}

type linear struct {
	name    string
	to      *nn.Linear
	out, in int
	bias    bool
}

func (p *linear) shapes(s Shapes) {
	s.Need(p.name+".weight", p.out, p.in)
	if p.bias {
		s.May(p.name+".bias", p.out)
	}
}

func (p *linear) load(w model.Weights) (err error) {
	p.to.W, err = w.Matrix(p.name+".weight", p.out, p.in)
	if bias := p.name + ".bias"; err == nil && w.Has(bias) {
		if !p.bias {
			return errBias(bias)
		}
		p.to.Bias, err = w.Vector(bias, p.out)
	}
	return err
}

func errBias(name string) error {
	return fmt.Errorf("tensor %s is a bias: heads of this kind have none here", name)
}

func (p *linear) weights(yield func(Weight)) { yieldLinear(p.name, p.to, yield) }

func yieldLinear(name string, l *nn.Linear, yield func(Weight)) {
	yield(Weight{Name: name + ".weight", Matrix: l.W})
	if l.Bias != nil {
		yield(Weight{Name: name + ".bias", Vector: l.Bias})
	}
}

// Norm is the weights of a norm over n numbers.
func Norm(name string, to *nn.Norm, n int) Part { return Vector(name, &to.Weight, n) }

func yieldNorm(name string, n *nn.Norm, yield func(Weight)) {
	if n != nil && len(n.Weight) > 0 {
		yield(Weight{Name: name + ".weight", Vector: n.Weight})
	}
}

// Vector is n numbers.
func Vector(name string, to *[]float32, n int) Part { return &vector{name, to, n} }

type vector struct {
	name string
	to   *[]float32
	n    int
}

func (p *vector) shapes(s Shapes) { s.Need(p.name+".weight", p.n) }

func (p *vector) load(w model.Weights) (err error) {
	*p.to, err = w.Vector(p.name+".weight", p.n)
	return err
}

func (p *vector) weights(yield func(Weight)) { yield(Weight{Name: p.name + ".weight", Vector: *p.to}) }

// Numbers is a permutation of the whole numbers below n, which is at most 2^24. Its name has no suffix.
func Numbers(name string, to *[]int32, n int) Part { return &numbersPart{name, to, n} }

type numbersPart struct {
	name string
	to   *[]int32
	n    int
}

// Orderer is a model.Weights that knows which vectors are permutations.
type Orderer interface {
	Order(name string, n int) ([]float32, error)
}

func (p *numbersPart) shapes(s Shapes) { s.Need(p.name, p.n) }

func (p *numbersPart) load(w model.Weights) error {
	vector := w.Vector
	if o, ok := w.(Orderer); ok {
		vector = o.Order
	}
	values, err := vector(p.name, p.n)
	if err != nil {
		return err
	}
	*p.to = make([]int32, len(values))
	seen := make([]bool, p.n)
	for i, v := range values {
		if !(v >= 0 && v < float32(p.n) && float32(int(v)) == v) || seen[int(v)] {
			return fmt.Errorf("tensor %s: entry %d is %g: want every number from 0 to %d exactly once", p.name, i, v, p.n-1)
		}
		seen[int(v)] = true
		(*p.to)[i] = int32(v)
	}
	return nil
}

func (p *numbersPart) weights(yield func(Weight)) {
	values := make([]float32, len(*p.to))
	for i, v := range *p.to {
		values[i] = float32(v)
	}
	yield(Weight{Name: p.name, Vector: values, Fixed: true})
}

// LSTM is a layer of width numbers over rows of in numbers. Its gates have biases. Without recurs
// each row starts from a zero state: the matrix for the state, which files may still have, is not
// read, and its bias is added to the bias of the input.
func LSTM(name string, l *nn.LSTM, width, in int, recurs bool) Part {
	return &lstm{l, recurs, [2]*linear{{name + ".input", &l.In, 4 * width, in, true},
		{name + ".state", &l.State, 4 * width, width, true}}}
}

type lstm struct {
	to     *nn.LSTM
	recurs bool
	parts  [2]*linear // from input and from state to gates
}

func (p *lstm) shapes(s Shapes) {
	in, state := p.parts[0], p.parts[1]
	s.Need(in.name+".weight", in.out, in.in)
	s.Need(in.name+".bias", in.out)
	s.May(state.name+".bias", state.out)
	if p.recurs {
		s.Need(state.name+".weight", state.out, state.in)
	} else {
		s.May(state.name+".weight", state.out, state.in)
	}
}

func (p *lstm) load(w model.Weights) (err error) {
	in, state := p.parts[0], p.parts[1]
	if p.to.In.W, err = w.Matrix(in.name+".weight", in.out, in.in); err != nil {
		return err
	}
	if p.to.In.Bias, err = w.Vector(in.name+".bias", in.out); err != nil || p.recurs {
		return errors.Join(err, state.load(w))
	}
	if bias := state.name + ".bias"; w.Has(bias) {
		more, err := w.Vector(bias, state.out)
		if err != nil {
			return err
		}
		p.to.In.Bias = slices.Clone(p.to.In.Bias)
		for i, b := range more {
			p.to.In.Bias[i] += b
		}
	}
	return nil
}

func (p *lstm) weights(yield func(Weight)) {
	p.parts[0].weights(yield)
	if p.recurs {
		p.parts[1].weights(yield)
	}
}

// Table is a matrix whose rows are looked up.
func Table(name string, to *nn.Table, rows, cols int) Part { return &table{name, to, rows, cols} }

type table struct {
	name       string
	to         *nn.Table
	rows, cols int
}

func (p *table) shapes(s Shapes) { s.Need(p.name+".weight", p.rows, p.cols) }

func (p *table) load(w model.Weights) (err error) {
	*p.to, err = w.Table(p.name+".weight", p.rows, p.cols)
	return err
}

func (p *table) weights(yield func(Weight)) {
	yield(Weight{Name: p.name + ".weight", Table: *p.to, Rows: p.rows, Cols: p.cols})
}

// Blocks is a head's layers, as Of configures them.
type Blocks struct {
	Of     *model.Config
	To     *[]nn.Block
	Biases bool // biases are allowed
	Wide   bool // queries, keys and values of the first layer read rows that are twice as wide
	Bare   bool // the first layer has no norm before its attention
}

// reading names the products that read a layer's input.
var reading = []string{"attn_q", "attn_k", "attn_v"}

func (p *Blocks) shapes(s Shapes) {
	for _, x := range p.Of.LayerParts() {
		dims := []int{x.Rows, x.Cols}[:1+min(x.Cols, 1)]
		part, first := strings.CutPrefix(x.Name, "blk.0.")
		if first && p.Bare && part == "attn_norm" {
			continue
		}
		if first && p.Wide && slices.Contains(reading, part) {
			dims[1] *= 2
		}
		bias := p.Biases && len(dims) == 2
		if model.Alike(p.Of.Arch) {
			_, bias = model.BiasField(p.Of.Arch, x.Name)
		}
		if bias {
			s.May(x.Name+".bias", x.Rows)
		}
		if x.Experts > 0 {
			dims = append([]int{x.Experts}, dims...)
		}
		s.Need(x.Weight(), dims...)
	}
}

func (p *Blocks) load(w model.Weights) (err error) {
	for i := range p.Of.Layers {
		for _, part := range reading {
			if name := fmt.Sprintf("blk.%d.%s.bias", i, part); !p.Biases && w.Has(name) {
				return errBias(name)
			}
		}
	}
	if model.Alike(p.Of.Arch) {
		*p.To, err = model.NewBlocks(p.Of, w)
		return err
	}
	*p.To, err = model.NewBlocks(p.Of, firstLayer{w, p})
	return err
}

// firstLayer is a model.Weights that accounts for what differs in the first layer.
type firstLayer struct {
	model.Weights
	p *Blocks
}

func (f firstLayer) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	for _, part := range reading {
		if f.p.Wide && name == "blk.0."+part+".weight" {
			in *= 2
		}
	}
	return f.Weights.Matrix(name, out, in)
}

func (f firstLayer) Vector(name string, n int) ([]float32, error) {
	if f.p.Bare && name == "blk.0.attn_norm.weight" {
		return nil, nil
	}
	return f.Weights.Vector(name, n)
}

func (p *Blocks) weights(yield func(Weight)) {
	for i := range *p.To {
		b := &(*p.To)[i]
		part := func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
		yieldNorm(part("attn_norm"), &b.AttnNorm, yield)
		for k := range b.QKV {
			yieldLinear(part(reading[k]), &b.QKV[k], yield)
		}
		yieldNorm(part("attn_q_norm"), b.Attn.QNorm, yield)
		yieldNorm(part("attn_k_norm"), b.Attn.KNorm, yield)
		yieldLinear(part("attn_output"), &b.Out, yield)
		yieldNorm(part("post_attention_norm"), b.AttnPost, yield)
		yieldNorm(part("ffn_norm"), &b.MLPNorm, yield)
		yieldLinear(part("ffn_gate"), b.MLP.Gate, yield)
		yieldLinear(part("ffn_up"), &b.MLP.Up, yield)
		yieldLinear(part("ffn_down"), &b.MLP.Down, yield)
		yieldNorm(part("post_ffw_norm"), b.MLPPost, yield)
		if b.OutScale != 0 {
			yield(Weight{Name: part("layer_output_scale.weight"), Vector: []float32{b.OutScale}})
		}
	}
}

// Ends are the embedding and the output matrix of a head's network: the target's or the head's own.
type Ends struct {
	Embed nn.Table
	Head  nn.Linear

	OwnEmbed, OwnHead bool // they are the head's own

	tokens []int32 // the tokens whose rows Head keeps of the target's output matrix; nil: all
}

// EndsOf returns the target's. A head with a draft vocabulary and no output matrix takes only the rows of its tokens.
func EndsOf(target *model.Network, tokens []int32) Ends {
	return Ends{Embed: target.Embed, Head: target.Head, tokens: tokens}
}

// takeRows copies the rows of the tokens from the target's output matrix.
func (e *Ends) takeRows() error {
	from := e.Head
	w, err := gemm.New(from.W.Type(), len(e.tokens), from.W.In())
	if err != nil {
		return err
	}
	e.Head = nn.Linear{W: w, Scale: from.Scale, Cap: from.Cap}
	if from.Bias != nil {
		e.Head.Bias = make([]float32, len(e.tokens))
	}
	for i, t := range e.tokens {
		w.CopyRow(i, from.W, int(t))
		if from.Bias != nil {
			e.Head.Bias[i] = from.Bias[t]
		}
	}
	return nil
}

// Part is the ends of a head of a shape, which may have its own. If bias is set, its own output may have a bias.
func (e *Ends) Part(s Shape, bias bool) Part {
	return &ends{e, s.Common(), bias}
}

// OutputPart is only the output matrix, for a head that looks up no embedding.
func (e *Ends) OutputPart(s Shape) Part {
	return &output{ends{e, s.Common(), false}}
}

type output struct{ ends }

func (p *output) shapes(s Shapes) { s.May("output.weight", p.c.Output(), p.c.Hidden) }

type ends struct {
	to   *Ends
	c    *Base
	bias bool
}

func (p *ends) head() *linear {
	return &linear{"output", &p.to.Head, p.c.Output(), p.c.Hidden, p.bias}
}

func (p *ends) shapes(s Shapes) {
	s.May("token_embd.weight", p.c.Vocab, p.c.Hidden)
	p.head().shapes(s)
	s.May("output.weight", p.c.Output(), p.c.Hidden)
}

func (p *ends) load(w model.Weights) (err error) {
	e := p.to
	if w.Has("token_embd.weight") {
		e.OwnEmbed = true
		e.Embed, err = w.Table("token_embd.weight", p.c.Vocab, p.c.Hidden)
	}
	if w.Has("output.weight") && err == nil {
		e.OwnHead = true
		e.Head = nn.Linear{}
		err = p.head().load(w)
	}
	if !e.OwnHead && e.tokens != nil && err == nil {
		err = e.takeRows()
	}
	e.tokens = nil
	return err
}

func (p *ends) weights(yield func(Weight)) {
	fixed := func(w Weight) {
		w.Fixed = true
		yield(w)
	}
	if p.to.OwnEmbed {
		fixed(Weight{Name: "token_embd.weight", Table: p.to.Embed, Rows: p.c.Vocab, Cols: p.c.Hidden})
	}
	if p.to.OwnHead {
		yieldLinear("output", &p.to.Head, fixed)
	}
}

// CheckWeights refuses an invalid shape, and a draft vocabulary that does not match the weights of a head.
func CheckWeights(s Shape, w model.Weights, tokens []int32) error {
	if err := s.Validate(); err != nil {
		return err
	}
	c := s.Common()
	n := c.Output()
	vocab := c.Vocab
	switch {
	case w.Has("output.bias") && !w.Has("output.weight"):
		return fmt.Errorf("tensor output.bias is present and output.weight is not: want both or neither")
	case tokens == nil && n < vocab:
		return fmt.Errorf("the draft vocabulary has %d of %d tokens, and nothing says which: the file must list their ids", n, vocab)
	case tokens == nil:
		return nil
	case len(tokens) != n:
		return fmt.Errorf("the file lists %d tokens for a draft vocabulary of %d: the numbers must be equal", len(tokens), n)
	}
	seen := make([]bool, vocab)
	for i, t := range tokens {
		if t < 0 || int(t) >= vocab || seen[t] {
			return fmt.Errorf("token %d of the draft vocabulary is %d: want ids from 0 to %d, each at most once", i, t, vocab-1)
		}
		seen[t] = true
	}
	return nil
}

// Check refuses tensors that do not make a head of the shape, whose taps may be left to the target.
// called returns the name of a tensor in errors; nil: its own.
func Check(s Shape, weights []tensor.Tensor, tokens []int32, called func(string) string) error {
	return usual(s, func() error {
		if err := s.Validate(); err != nil {
			return err
		}
		c := s.Common()
		if c.Rope.Neighbours && (!s.Kind().Pairs || c.Arch != "llama") && !model.Alike(c.Arch) {
			return fmt.Errorf("layers of %s must have the rows of queries and keys in halves, not in neighbouring pairs", c.Arch)
		}
		if err := s.Parts().Shapes().Check(weights, called); err != nil {
			return err
		}
		return CheckWeights(s, model.NewLoader(weights, s.FileArch()), tokens)
	})
}

// usual calls f with the shape's default taps in place if they are left to the target.
func usual(s Shape, f func() error) error {
	c := s.Common()
	if c.Taps == nil {
		c.Taps = s.DefaultTaps(cmp.Or(c.TargetLayers, 3))
		defer func() { c.Taps = nil }()
	}
	return f()
}
