package train

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/tensor"
)

// A checkpoint is a safetensors file: for every parameter its masters (w.NAME) and the optimiser's
// state (m.NAME, v.NAME), with the rest of the state as JSON in the metadata. It is written
// completely or not at all, and the previous one stays until the next is written.

// state is the data from which a run continues, besides the tensors. Data position and random
// numbers are functions of the step and the seed.
type state struct {
	Step    int     `json:"step"`
	Recipe  string  `json:"recipe"` // Fingerprint of everything that the outcome depends on
	Seconds float64 `json:"seconds"`
	Best    float64 `json:"best"` // lowest validation loss, and how many validations ago
	Stale   int     `json:"stale"`
	Done    bool    `json:"done"`
}

const checkpointPrefix, checkpointSuffix = "checkpoint-", ".safetensors"

// keepCheckpoints is how many of the newest checkpoints are kept.
const keepCheckpoints = 2

func checkpointPath(dir string, step int) string {
	return filepath.Join(dir, fmt.Sprintf("%s%08d%s", checkpointPrefix, step, checkpointSuffix))
}

// checkpoints lists the folder's checkpoints, newest first.
func checkpoints(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if n := e.Name(); strings.HasPrefix(n, checkpointPrefix) && strings.HasSuffix(n, checkpointSuffix) {
			found = append(found, filepath.Join(dir, n))
		}
	}
	slices.Sort(found)
	slices.Reverse(found)
	return found, nil
}

// save writes a checkpoint and removes all except the last ones.
func (o *optimizer) save(dir string, s state) error {
	w := safetensors.NewWriter()
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	w.SetMetadata("state", string(b))
	for _, t := range o.tensors() {
		w.Add(t.name, tensor.F32, t.shape, func(out io.Writer) error { return WriteFloats(out, t.data) })
	}
	if err := w.WriteFile(checkpointPath(dir, s.Step)); err != nil {
		return err
	}
	old, err := checkpoints(dir)
	if err != nil {
		return err
	}
	for _, path := range old[min(keepCheckpoints, len(old)):] {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	// Partial files left behind by a kill.
	parts, _ := filepath.Glob(filepath.Join(dir, checkpointPrefix+"*.tmp-*"))
	for _, path := range parts {
		os.Remove(path)
	}
	return nil
}

// load restores the newest checkpoint in the folder; ok is false if there is none.
func (o *optimizer) load(dir, recipe string) (s state, ok bool, err error) {
	found, err := checkpoints(dir)
	if err != nil || len(found) == 0 {
		return s, false, err
	}
	path := found[0]
	f, err := safetensors.Open(path)
	if err != nil {
		return s, false, fmt.Errorf("%w (delete the file to go on from the checkpoint before it)", err)
	}
	defer f.Close()
	if err := json.Unmarshal([]byte(f.Metadata["state"]), &s); err != nil {
		return s, false, fmt.Errorf("%s: metadata \"state\": %w: not a checkpoint of grove", path, err)
	}
	want := o.tensors()
	for _, t := range want {
		got, found := f.Tensor(t.name)
		if !found {
			return s, false, fmt.Errorf("%s: no tensor %s: it was made with other flags, or of another model: give the same ones, or another --name", path, t.name)
		}
		if !slices.Equal(got.Shape, t.shape) || got.Type != tensor.F32 {
			return s, false, fmt.Errorf("%s: tensor %s is %v of %v, this model's is F32 of %v: it was made with other flags: give the same ones, or another --name",
				path, t.name, got.Type, got.Shape, t.shape)
		}
	}
	if s.Recipe != recipe {
		return s, false, fmt.Errorf("%s: made with other flags, another text or another model than this command names: give the same ones, or another --name", path)
	}
	for _, t := range want {
		got, err := f.Load(t.name)
		if err != nil {
			return s, false, err
		}
		v, err := got.Float32s()
		if err != nil {
			return s, false, err
		}
		copy(t.data, v)
	}
	return s, true, nil
}

type stateTensor struct {
	name  string
	shape []int
	data  []float32
}

func (o *optimizer) tensors() []stateTensor {
	var ts []stateTensor
	for _, s := range o.slots {
		shape := s.p.Shape()
		ts = append(ts, stateTensor{"w." + s.p.Name, shape, s.p.Data}, stateTensor{"m." + s.p.Name, shape, s.m})
		if s.v != nil {
			ts = append(ts, stateTensor{"v." + s.p.Name, shape, s.v})
		}
	}
	return ts
}

// WriteFloats writes v little endian.
func WriteFloats(out io.Writer, v []float32) error {
	b := make([]byte, 0, 1<<16)
	for len(v) > 0 {
		n := min(len(v), cap(b)/4)
		b = b[:0]
		for _, x := range v[:n] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		v = v[n:]
	}
	return nil
}
