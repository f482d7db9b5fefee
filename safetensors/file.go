package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/mmap"
	"github.com/grovellm/grove/internal/torch"
	"github.com/grovellm/grove/tensor"
)

// File is an open safetensors file, or all the shards of a model. It may be read from several goroutines; Close may not
// run beside them, and ends the life of every Tensor's data.
type File struct {
	Path     string            // the file, or the folder of shards
	Metadata map[string]string // the optional __metadata__ entry; of shards, that of the first
	Tensors  []Info            // in the order of their data

	parts  []part
	byName map[string]int
}

// Info describes a tensor without touching its data.
type Info struct {
	Name   string
	DType  string      // as the file names it
	Type   tensor.Type // tensor.Unknown for a dtype this package has no name for
	Shape  []int       // outermost first
	Offset int64       // of its data in its file
	Size   int64       // bytes
	Part   int         // which shard
}

type part struct {
	path string
	m    *mmap.File
}

// The names Hugging Face's library gives the files of a model's folder.
const (
	singleName = "model.safetensors"
	torchName  = "pytorch_model.bin"
	indexEnd   = ".index.json" // after one of them: the shards'
)

// Open maps the file at path; a folder is opened as OpenFolder does.
func Open(path string) (*File, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return OpenFolder(path)
	}
	f := newFile(path)
	if err := f.addPart(path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenFolder opens the weights of a Hugging Face model folder: model.safetensors, or the shards that
// model.safetensors.index.json lists; without them pytorch_model.bin or its shards.
func OpenFolder(dir string) (*File, error) {
	for _, name := range []string{singleName, torchName} {
		single := filepath.Join(dir, name)
		if _, err := os.Stat(single); err == nil {
			return Open(single)
		}
		index := single + indexEnd
		if _, err := os.Stat(index); err == nil {
			f := newFile(dir)
			if err := f.openShards(index); err != nil {
				f.Close()
				return nil, err
			}
			return f, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, tensor.OpenError("safetensors", index, err)
		}
	}
	return nil, fault(dir, "", "give the folder of a model with its weights", "holds neither %s nor %s, nor an index of such files (%s)", singleName, torchName, indexEnd)
}

func newFile(path string) *File { return &File{Path: path, byName: map[string]int{}} }

// openShards opens every shard the index names and checks that each tensor lies where the index says.
func (f *File) openShards(index string) error {
	weights, err := readIndex(index)
	if err != nil {
		return err
	}
	for _, shard := range slices.Sorted(maps.Values(weights)) {
		if !plainName(shard) {
			return fault(index, `field "weight_map"`, "do not use this download", "the shard name %s leaves the model's folder", tensor.Quote(shard))
		}
		path := filepath.Join(f.Path, shard)
		if len(f.parts) > 0 && f.parts[len(f.parts)-1].path == path {
			continue // sorted: a shard's tensors come together
		}
		if err := f.addPart(path); err != nil {
			return err
		}
	}
	for name, shard := range weights {
		i, ok := f.byName[name]
		if !ok || f.parts[f.Tensors[i].Part].path != filepath.Join(f.Path, shard) {
			return fault(index, "tensor "+tensor.Quote(name), "take the index and all shards from one download", "is not in %s as the index says", tensor.Quote(shard))
		}
	}
	return nil
}

// maxIndex bounds the index file: the largest models' have about 100k entries of 100 bytes.
const maxIndex = 100 << 20

// readIndex returns the shard of each tensor.
func readIndex(index string) (map[string]string, error) {
	r, err := os.Open(index)
	if err != nil {
		return nil, tensor.OpenError("safetensors", index, err)
	}
	defer r.Close()
	if st, err := r.Stat(); err == nil && st.Size() > maxIndex {
		return nil, fault(index, "", remedyWrong, "is larger than %d bytes", maxIndex)
	}
	p := &parser{dec: json.NewDecoder(io.LimitReader(r, maxIndex))}
	weights := map[string]string{}
	err = p.object(func(key string) error {
		if key != "weight_map" {
			return p.skip()
		}
		return p.object(func(name string) error {
			shard, err := p.str()
			if weights[name] = shard; len(weights) > maxTensors {
				return fmt.Errorf("more than %d tensors", maxTensors)
			}
			return err
		})
	})
	if err != nil {
		return nil, fault(index, "", remedyWrong, "want JSON with an object of strings, weight_map: %w", err)
	}
	if len(weights) == 0 {
		return nil, fault(index, `field "weight_map"`, remedyWrong, "is missing or empty")
	}
	return weights, nil
}

// plainName reports whether a shard's name is that of a file right in the folder, on every system.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && filepath.IsLocal(s) && !strings.ContainsAny(s, `/\:`+"\x00")
}

// addPart maps a file and adds its tensors.
func (f *File) addPart(path string) error {
	m, err := mmap.Open(path)
	if err != nil {
		return tensor.OpenError("safetensors", path, err)
	}
	n := len(f.parts)
	f.parts = append(f.parts, part{path, m})
	h, err := parseAny(m.Data)
	if err != nil {
		if e := (*tensor.FileError)(nil); errors.As(err, &e) {
			e.File = path
		}
		return err
	}
	if n == 0 {
		f.Metadata = h.metadata
	}
	for _, t := range h.tensors {
		if j, twice := f.byName[t.Name]; twice {
			return fault(path, "tensor "+tensor.Quote(t.Name), "take the index and all shards from one download", "is also in %s", f.parts[f.Tensors[j].Part].path)
		}
		t.Part = n
		f.byName[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
	return nil
}

// parseAny parses a file of either kind.
func parseAny(data []byte) (*header, error) {
	if bytes.HasPrefix(data, []byte(torch.Magic)) {
		return parseTorch(data)
	}
	return parse(data)
}

// Close unmaps the files.
func (f *File) Close() error {
	var errs []error
	for _, p := range f.parts {
		errs = append(errs, p.m.Close())
	}
	f.parts = nil
	return errors.Join(errs...)
}

// Tensor returns the named tensor, its data being a view of the mapped file. ok is false where there is none of
// that name. Data of a type that tensor.Dequantize does not read is there all the same: Load makes it an error.
func (f *File) Tensor(name string) (t tensor.Tensor, ok bool) {
	i, ok := f.byName[name]
	if !ok || len(f.parts) == 0 {
		return tensor.Tensor{}, false
	}
	info := f.Tensors[i]
	data := f.parts[info.Part].m.Data[info.Offset : info.Offset+info.Size : info.Offset+info.Size]
	return tensor.Tensor{Name: info.Name, Type: info.Type, Shape: info.Shape, Data: data}, true
}

// Load is Tensor with an error, naming file and tensor, for one that is missing or of a type that cannot be read.
func (f *File) Load(name string) (tensor.Tensor, error) {
	field := "tensor " + tensor.Quote(name)
	t, ok := f.Tensor(name)
	if !ok {
		return t, fault(f.Path, field, "the weights do not belong to this config.json: fetch the model again", "is not in the file")
	}
	if info := f.Tensors[f.byName[name]]; !t.Type.Decodes() {
		return t, fault(f.parts[info.Part].path, field, "convert the model to F32, F16 or BF16", "is of dtype %s, which grove cannot compute with", tensor.Quote(info.DType))
	}
	return t, nil
}

// Prefetch asks the system to start reading the tensor's data.
func (f *File) Prefetch(name string) { f.advise(name, mmap.WillNeed) }

// Release tells the system that the tensor's data will not be read again soon, so that its pages can leave memory; reading it
// again stays correct.
func (f *File) Release(name string) { f.advise(name, mmap.DontNeed) }

func (f *File) advise(name string, a mmap.Advice) {
	if i, ok := f.byName[name]; ok && len(f.parts) > 0 {
		t := f.Tensors[i]
		f.parts[t.Part].m.Advise(a, int(t.Offset), int(t.Size))
	}
}
