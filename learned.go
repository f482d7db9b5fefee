package grove

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

// learned is what drafters learned, kept in a file. Its zero value keeps nothing. If several models
// were opened with one file, the last one to save writes it.
type learned struct {
	dir, path string
	file      learnedFile
	saved     atomic.Int64 // when it was opened or saved, in Unix seconds
}

// saveSeconds is the time between saves while the model is open: a killed process loses at most that much.
const saveSeconds = 300

// due reports whether it is time to save, to one caller only.
func (l *learned) due() bool {
	last, now := l.saved.Load(), time.Now().Unix()
	return l.path != "" && (now < last || now-last >= saveSeconds) && l.saved.CompareAndSwap(last, now)
}

// learnedFile is the file's content.
type learnedFile struct {
	Format   int                       `json:"format"`
	Drafters map[string]drafterLearned `json:"drafters"` // by text
}

// drafterLearned is what one drafter learned.
type drafterLearned struct {
	Weights [][]float32 `json:"weights,omitempty"` // the drafter's own; see draft.Drafter
	Counts  [][]float32 `json:"counts"`            // of acceptance; see speculate.Controller
}

// learnedFormat is the file's format. A file of another format is overwritten.
const learnedFormat = 1

// openLearned reads what drafters of the model learned earlier.
func (m *Model) openLearned(o *Options) error {
	dir, field := o.Learned, "Learned"
	if dir == "" && o.Adapt != nil {
		dir, field = o.Adapt.Dir, "Adapt"
	}
	if dir == "" {
		return nil
	}
	if err := atomicfile.TryFolder(dir); err != nil {
		return optionf(field, "%v: want a folder that can be written", err)
	}
	c := m.m.Config
	sum := sha256.Sum256(fmt.Append(nil, c.Name, c.Arch, c.Vocab, c.Hidden, c.Layers, m.m.WeightBytes(), m.headNames(),
		o.Draft))
	return m.drafting.learned.open(dir, "drafting-"+hex.EncodeToString(sum[:8])+".json")
}

// headNames returns the names of the heads that the model was opened with.
func (m *Model) headNames() (names []string) {
	for _, h := range m.drafting.heads {
		names = append(names, h.Name)
	}
	return names
}

// open reads the file, if there is one, in a folder that can be written.
func (l *learned) open(dir, name string) error {
	l.dir, l.path = dir, filepath.Join(dir, name)
	l.saved.Store(time.Now().Unix())
	data, err := os.ReadFile(l.path)
	if err == nil {
		err = json.Unmarshal(data, &l.file)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return optionf("Learned", "%s: %v: delete the file", l.path, err)
	}
	if l.file.Format != learnedFormat || l.file.Drafters == nil { // from another version of grove, or new
		l.file = learnedFile{learnedFormat, map[string]drafterLearned{}}
	}
	return nil
}

// set gives a new drafter what an earlier one with the same text learned.
func (l *learned) set(text string, weights, counts [][]float32) error {
	from, ok := l.file.Drafters[text]
	if !ok {
		return nil
	}
	for _, f := range []struct {
		field    string
		from, to [][]float32
	}{{"weights", from.Weights, weights}, {"counts", from.Counts, counts}} {
		if !slices.EqualFunc(f.from, f.to, func(a, b []float32) bool { return len(a) == len(b) }) || !finite(f.from) {
			return optionf("Learned", "%s: the %s of drafter %q do not fit that drafter: delete the file", l.path, f.field, text)
		}
		for i := range f.from {
			copy(f.to[i], f.from[i])
		}
	}
	return nil
}

// note records what a drafter learned.
func (l *learned) note(text string, weights, counts [][]float32) {
	if l.path == "" || !finite(weights) || !finite(counts) {
		return
	}
	l.file.Drafters[text] = drafterLearned{copied(weights), copied(counts)}
}

func (l *learned) save() error {
	if l.path == "" || len(l.file.Drafters) == 0 {
		return nil
	}
	_ = os.MkdirAll(l.dir, 0o700) // if this fails, so does writing the file
	return atomicfile.WriteJSON(l.path, &l.file)
}

func copied(lists [][]float32) (all [][]float32) {
	for _, list := range lists {
		all = append(all, slices.Clone(list))
	}
	return all
}

func finite(lists [][]float32) bool {
	return !slices.ContainsFunc(slices.Concat(lists...), func(x float32) bool { return x-x != 0 }) // NaN, infinite
}
