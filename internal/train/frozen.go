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

// frozen is a target from which a head learns: it computes taps and distributions, and is not trained.
type frozen struct {
	*Network
	layers []int // whose output the head reads

	taps nn.Mat // of the last pass, joined
	buf  nn.Buffer
}

func newFrozen(n *Network, layers []int) frozen {
	n.tape.Detach()
	return frozen{Network: n, layers: layers}
}

// read runs texts of one length, one after the other, and keeps the taps of all tokens. It returns the rows before the last norm.
func (f *frozen) read(texts [][]int32) nn.Mat {
	var tokens []int32
	for _, text := range texts {
		tokens = append(tokens, text...)
	}
	f.taps = f.buf.Mat(len(tokens), len(f.layers)*f.Shape.Hidden)
	return f.forward(tokens, len(texts[0]), f)
}

// Layer copies the residual stream into the columns of the taps that name the layer.
func (f *frozen) Layer(layer int, x nn.Mat) error {
	for t, l := range f.layers {
		if l == layer {
			dst := f.taps.Columns(t*x.Cols, (t+1)*x.Cols)
			for i := range x.Rows {
				copy(dst.Row(i), x.Row(i))
			}
		}
	}
	return nil
}

// distributions fills s with what the target says after tokens [from, to) of each of so many texts, x being their rows from read
// and head what it says it with: its own head, or some rows of that.
func (f *frozen) distributions(s *nn.Soft, x nn.Mat, texts, from, to int, head *nn.Linear) {
	places, length := to-from, x.Rows/texts
	s.Reset(texts*places, head.W.Out())
	for i := range texts {
		s.Fill(f.exec, i*places, nn.Source{X: x.Slice(i*length+from, i*length+to), Norm: &f.net.Norm}, head)
	}
}

// kindOf is how products of a precision, which a recipe's check has passed, are computed.
func kindOf(precision string) gemm.Type {
	if precision == "bf16" {
		return gemm.BF16
	}
	return gemm.F32
}

// openTarget opens the job's target to be learned from, and returns what tells it apart from others.
func (j *Job) openTarget(shape Shape, pool *par.Pool, precision string) (n *Network, source string, err error) {
	folder := filepath.Join(j.Dir, "target", "hf")
	if source, err = hashFile(filepath.Join(folder, "model.safetensors")); err != nil {
		return nil, "", err
	}
	if n, err = NewNetwork(shape, pool, kindOf(precision)); err != nil {
		return nil, "", err
	}
	return n, source, n.Load(folder)
}

func hashFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), err
}
