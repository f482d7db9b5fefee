// What survives a restart: the student's weights with the optimiser's state, and what the bandit knows, as a safetensors file.

package adapt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/grovellm/grove/draft/learn"
	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
)

// kept is the file's metadata "state".
type kept struct {
	Head   string `json:"head"` // fingerprint of the first head
	Steps  []int  `json:"steps"`
	Bandit bandit `json:"bandit"`
	Stats  Stats  `json:"stats"`
}

const stateKey = "grove.adapt"

// Fingerprint tells heads apart by their weights.
func Fingerprint(h learn.Head) string {
	sum := sha256.New()
	var b [4]byte
	h.Weights(func(w learn.Weight) {
		io.WriteString(sum, w.Name)
		w.Each(func(_ int, row []float32) {
			for _, x := range row {
				binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
				sum.Write(b[:])
			}
		})
	})
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// save writes the state file, if there is to be one and something was learned, or one is there. The lock is held, and the worker idle
// or the caller.
func (a *Adapter) save() error {
	if a.o.State == "" {
		return nil
	}
	k := kept{Head: Fingerprint(a.first), Bandit: a.bandit, Stats: a.stats}
	w := safetensors.NewWriter()
	if s := a.work.student; s != nil {
		t := s.Save(learn.State{})
		k.Steps = t.Steps
		for i, p := range s.Params() {
			for _, part := range parts(&t, i) {
				w.Add(part.prefix+p.Name, tensor.F32, p.Shape(), func(out io.Writer) error { return writeFloats(out, part.data) })
			}
		}
	}
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	w.SetMetadata(stateKey, string(b))
	return w.WriteFile(a.o.State)
}

// load goes on from the state file, if there is one.
func (a *Adapter) load() (err error) {
	path := a.o.State
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return fmt.Errorf("adapt: %w (delete the file to begin anew)", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var k kept
	if err := json.Unmarshal([]byte(f.Metadata[stateKey]), &k); err != nil {
		return fmt.Errorf("adapt: %s: metadata %q: %w: not the state of an adapted drafter", path, stateKey, err)
	}
	if got := Fingerprint(a.first); k.Head != got {
		return fmt.Errorf("adapt: %s: it was learned on another head (%s) than this one (%s): name another file, or delete it", path, k.Head, got)
	}
	a.bandit, a.stats = k.Bandit, k.Stats
	a.bandit.warmUp = a.o.WarmUp
	a.stats.Error = ""
	if len(k.Steps) == 0 {
		return nil
	}
	s, err := a.work.ready()
	if err != nil {
		return err
	}
	t := s.Save(learn.State{})
	if len(k.Steps) != len(t.Steps) {
		return fmt.Errorf("adapt: %s: %d tensors: want %d", path, len(k.Steps), len(t.Steps))
	}
	t.Steps = k.Steps
	for i, p := range s.Params() {
		for _, part := range parts(&t, i) {
			x, err := f.Load(part.prefix + p.Name)
			if err != nil {
				return fmt.Errorf("adapt: %w (delete the file to begin anew)", err)
			}
			values, err := x.Float32s()
			if err != nil {
				return err
			}
			if len(values) != len(part.data) {
				return fmt.Errorf("adapt: %s: tensor %s has %d elements: want %d", path, part.prefix+p.Name, len(values), len(part.data))
			}
			copy(part.data, values)
		}
	}
	s.Load(t)
	h, err := s.Packed()
	if err != nil {
		return err
	}
	a.use(h)
	return nil
}

// part is a tensor of a state file, named by a prefix and the parameter.
type part struct {
	prefix string
	data   []float32
}

// parts are those of parameter i.
func parts(t *learn.State, i int) []part {
	return []part{{"w.", t.Weights[i]}, {"mean.", t.Means[i]}, {"m.", t.M[i]}, {"v.", t.V[i]}}
}

// writeFloats writes v little endian.
func writeFloats(out io.Writer, v []float32) error {
	return binary.Write(out, binary.LittleEndian, v)
}
