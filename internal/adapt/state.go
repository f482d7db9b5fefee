// The state that survives a restart: the student's weights, the optimiser's state, and the policy's,
// in a safetensors file.

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
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/filelock"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/tensor"
)

// stateFile is a locked state file. Its zero value keeps nothing.
type stateFile struct {
	path  string
	head  string // fingerprint of the first head
	lock  *filelock.Lock
	write func(path string, w *safetensors.Writer) error
}

// saved is the file's metadata stateKey.
type saved struct {
	Head   string     `json:"head"` // fingerprint of the first head
	Steps  []int      `json:"steps"`
	Bandit bandit     `json:"bandit"`
	Over   comparison `json:"over"` // of the head in use over the first one
	Stats  Stats      `json:"stats"`
}

const (
	stateKey = "grove.adapt.2"
	oldKey   = "grove.adapt" // of versions that put every update into use
)

// Fingerprint returns a fingerprint of a head's weights.
func Fingerprint(h learn.Head) string {
	sum := sha256.New()
	var b []byte
	h.Tensors().Weights(func(w headfile.Weight) {
		io.WriteString(sum, w.Name)
		w.Each(func(_ int, row []float32) {
			b = b[:0]
			for _, x := range row {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
			sum.Write(b)
		})
	})
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// open locks the file of a head in a folder.
func (f *stateFile) open(dir string, first learn.Head) (err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("adapt: %w", err)
	}
	f.head = Fingerprint(first)
	f.path = filepath.Join(dir, f.head+".safetensors")
	f.write = func(path string, w *safetensors.Writer) error { return w.WriteFile(path) }
	f.lock, err = filelock.Take(f.path + ".lock")
	if held := (*filelock.HeldError)(nil); errors.As(err, &held) {
		const say = "adapt: folder %s: %s already learns there with this head (%s): end it, or name another folder"
		return fmt.Errorf(say, dir, held.Holder(), held.Path)
	}
	if err != nil {
		return fmt.Errorf("adapt: folder %s: %w: name a folder on a local disk that can be written", dir, err)
	}
	return atomicfile.RemoveUnfinished(f.path)
}

// close unlocks the file.
func (f *stateFile) close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Release()
}

// save writes the state file, if the adapter has one; without anything learned there is none. The caller uses the
// worker and does not hold the lock: decoding goes on.
func (a *Adapter) save() error {
	f := &a.state
	if f.path == "" {
		return nil
	}
	k, w := saved{Head: f.head}, safetensors.NewWriter()
	if s := a.work.student; s != nil && a.now() != a.first {
		t := a.work.used
		k.Steps = t.Steps
		for _, part := range parts(&t) {
			for i, p := range s.Params() {
				w.Add(part.prefix+p.Name, tensor.F32, p.Shape(), func(out io.Writer) error {
					return binary.Write(out, binary.LittleEndian, part.list[i])
				})
			}
		}
	}
	a.mu.Lock()
	k.Bandit = a.bandit
	k.Stats = a.stats
	k.Over = a.work.judged.over
	k.Stats.Account = a.account
	b, err := json.Marshal(k)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	if k.Stats == (Stats{}) {
		if err := os.Remove(f.path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	w.SetMetadata(stateKey, string(b))
	return f.write(f.path, w)
}

// load restores the state from the state file, if there is one.
func (a *Adapter) load() error {
	path := a.state.path
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return fmt.Errorf("adapt: %w (delete the file to start over)", err)
	}
	err = errors.Join(a.read(f), f.Close())
	if err != nil && !strings.Contains(err.Error(), path) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		err = fmt.Errorf("adapt: %w (delete the file to start over)", err)
	}
	return err
}

// read restores the state from an open state file.
func (a *Adapter) read(f *safetensors.File) error {
	var k saved
	if _, old := f.Metadata[oldKey]; old {
		return errors.New("it is from an older version of grove, which learned in another way")
	}
	if err := json.Unmarshal([]byte(f.Metadata[stateKey]), &k); err != nil {
		return fmt.Errorf("metadata %q: %w: not the state of an adapted drafter", stateKey, err)
	}
	if k.Head != a.state.head {
		return fmt.Errorf("it was learned on another head (%s) than this one (%s)", k.Head, a.state.head)
	}
	if err := k.check(); err != nil {
		return err
	}
	a.bandit = k.Bandit
	a.account = k.Stats.Account
	a.stats = k.Stats
	a.stats.Error = ""
	if len(k.Steps) == 0 {
		return nil
	}
	s, err := a.work.ready()
	if err != nil {
		return err
	}
	if n := len(s.Params()); len(k.Steps) != n {
		return fmt.Errorf("%d tensors: want %d", len(k.Steps), n)
	}
	t := s.State()
	t.Steps = k.Steps
	for _, part := range parts(&t) {
		for i, p := range s.Params() {
			x, err := f.Load(part.prefix + p.Name)
			if err != nil {
				return err
			}
			if !slices.Equal(x.Shape, p.Shape()) {
				return fmt.Errorf("tensor %s has shape %v: want %v", x.Name, x.Shape, p.Shape())
			}
			if part.list[i], err = x.Float32s(); err != nil {
				return err
			}
		}
	}
	if !t.Sound() {
		return fmt.Errorf("a weight is not a finite number, or too large to draft with")
	}
	s.Load(t)
	h, err := s.Packed()
	if err != nil {
		return err
	}
	a.work.use(s, h)
	a.work.judged.over, a.work.judged.would = k.Over, k.Over
	return nil
}

// part has a state's tensors of one kind, named by a prefix and their parameters.
type part struct {
	prefix string
	list   [][]float32
}

func parts(t *learn.State) []part {
	return []part{{"w.", t.Weights}, {"mean.", t.Means}, {"m.", t.M}, {"v.", t.V}}
}
