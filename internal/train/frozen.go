package train

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/nn"
)

// Frozen is a target from which a head learns: it computes taps and distributions, and is not trained.
type Frozen struct {
	*Network
	layers []int // whose output the head reads

	Taps nn.Mat // of the last pass, joined
	buf  nn.Buffer
}

// NewFrozen makes a network one, of which a head reads some layers.
func NewFrozen(n *Network, layers []int) Frozen {
	n.tape.Detach()
	return Frozen{Network: n, layers: layers}
}

// Read runs texts of one length, one after the other, and keeps the taps of all tokens. It returns the rows before the last norm.
func (f *Frozen) Read(texts [][]int32) nn.Mat {
	var tokens []int32
	for _, text := range texts {
		tokens = append(tokens, text...)
	}
	f.Taps = f.buf.Mat(len(tokens), len(f.layers)*f.Shape.Hidden)
	return f.forward(tokens, len(texts[0]), f)
}

// Layer copies the residual stream into the columns of the taps that name the layer.
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

// Distributions fills s with what the target says after tokens [from, to) of each of so many texts, x being their rows from Read
// and head what it says it with: its own head, or some rows of that.
func (f *Frozen) Distributions(s *nn.Soft, x nn.Mat, texts, from, to int, head *nn.Linear) {
	places, length := to-from, x.Rows/texts
	s.Reset(texts*places, head.W.Out())
	for i := range texts {
		s.Fill(f.exec, i*places, nn.Source{X: x.Slice(i*length+from, i*length+to), Norm: &f.Net.Norm}, head)
	}
}

// KindOf is how products of a precision, which a recipe's check has passed, are computed.
func KindOf(precision string) gemm.Type {
	if precision == "bf16" {
		return gemm.BF16
	}
	return gemm.F32
}

// openTarget opens the job's target to be learned from, and returns what tells it apart from others.
func (j *Job) openTarget(shape Shape, pool *par.Pool, precision string) (n *Network, source string, err error) {
	folder := filepath.Join(j.Dir, "target", "hf")
	if source, err = HashFile(filepath.Join(folder, "model.safetensors")); err != nil {
		return nil, "", err
	}
	if n, err = NewNetwork(shape, pool, KindOf(precision)); err != nil {
		return nil, "", err
	}
	return n, source, n.Load(folder)
}

// HashFile is the fingerprint of a file.
func HashFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), err
}

// OutputRows are the rows of a head's output by their tokens; nil: row i is of token i.
type OutputRows map[int32]int32

// Row is a token's row, -1 where the draft vocabulary has it not: what the head cannot say it does not learn.
func (o OutputRows) Row(token int32) int32 {
	if o == nil {
		return token
	}
	if r, ok := o[token]; ok {
		return r
	}
	return -1
}

// OutputOf packs the rows of some tokens of the output head, for products of a kind; without tokens it returns nothing.
func (n *Network) OutputOf(tokens []int32, kind gemm.Type) (OutputRows, *gemm.Matrix, error) {
	if tokens == nil {
		return nil, nil, nil
	}
	params := nn.NewParams(kind) // which nobody trains
	w, err := params.Matrix("output.weight", len(tokens), n.Shape.Hidden)
	if err != nil {
		return nil, nil, err
	}
	rows, of := params.Of(w).Mat(), OutputRows{}
	for i, t := range tokens {
		n.Net.Head.W.Row(rows.Row(i), int(t))
		of[t] = int32(i)
	}
	params.Pack(nn.NewProducts(n.exec.Pool(), kind))
	return of, w, nil
}
