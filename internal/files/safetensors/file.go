package safetensors

import (
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

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/infile"
	"github.com/grovellm/grove/internal/files/torch"
	"github.com/grovellm/grove/tensor"
)

// File is an open safetensors file, or all the shards of a model. Several goroutines may read it.
// After Close its tensors can no longer be read.
type File struct {
	Path     string            // the file, or the folder of shards
	Metadata map[string]string // the optional __metadata__ entry; for shards, the first one's
	Tensors  []Info            // in the order of their data

	parts  []*infile.File
	others []*infile.File // for a folder, the other files that a model is read from
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
	Part   int         // index of the shard

	stored tensor.Type                        // for a tensor of Replace: its type in the file
	read   func(dst []byte, r0, r1 int) error // nil: its bytes are those in the file
}

// The names that Hugging Face's library gives the files of a model's folder.
const (
	singleName = "model.safetensors"
	torchName  = "pytorch_model.bin"
	indexEnd   = ".index.json" // after one of them: the shards' index
)

// Open opens the file at path; it opens a folder as OpenFolder does. Reading a file that has
// changed since is an error, and never returns bytes of two versions.
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

// otherNames are the other files of a folder that a model is read from.
var otherNames = []string{
	"config.json", "generation_config.json", "tokenizer.json", "tekken.json", "tiktoken.model", "tokenizer.model",
	"tokenizer_config.json",
	"special_tokens_map.json", "chat_template.jinja", "chat_template.json", singleName + indexEnd, torchName + indexEnd,
}

// OpenFolder opens the weights of a Hugging Face model folder: model.safetensors, or the shards
// that model.safetensors.index.json lists; without these pytorch_model.bin or its shards; without
// those the first file with another name.
func OpenFolder(dir string, other ...string) (*File, error) {
	f := newFile(dir)
	if err := f.openFolder(other); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *File) openFolder(other []string) error {
	for _, name := range otherNames {
		path := filepath.Join(f.Path, name)
		p, err := infile.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fileerr.Opening("safetensors", path, err)
		}
		f.others = append(f.others, p)
	}
	for _, name := range []string{singleName, torchName} {
		single := filepath.Join(f.Path, name)
		if _, err := os.Stat(single); err == nil {
			f.Path = single
			return f.addPart(single)
		}
		index := single + indexEnd
		if _, err := os.Stat(index); err == nil {
			return f.openShards(index)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fileerr.Opening("safetensors", index, err)
		}
	}
	for _, name := range other {
		single := filepath.Join(f.Path, name)
		if _, err := os.Stat(single); err == nil {
			f.Path = single
			return f.addPart(single)
		}
	}
	return fault(f.Path, "", "give the folder of a model with its weights",
		"holds neither %s nor %s, nor an index of such files (%s)", singleName, torchName, indexEnd)
}

func newFile(path string) *File { return &File{Path: path, byName: map[string]int{}} }

// openShards opens every shard that the index names and checks that each tensor is where the index says.
func (f *File) openShards(index string) error {
	weights, err := readIndex(index)
	if err != nil {
		return err
	}
	for _, shard := range slices.Sorted(maps.Values(weights)) {
		if !plainName(shard) {
			return fault(index, `field "weight_map"`, "do not use this download", "the shard name %s leaves the model's folder",
				fileerr.Quote(shard))
		}
		path := filepath.Join(f.Path, shard)
		if len(f.parts) > 0 && f.parts[len(f.parts)-1].Path == path {
			continue // sorted, so a shard's tensors are consecutive
		}
		if err := f.addPart(path); errors.Is(err, fs.ErrNotExist) {
			return fault(index, `field "weight_map"`, "fetch that file too", "it names %s, which is not there",
				fileerr.Quote(shard))
		} else if err != nil {
			return err
		}
	}
	for name, shard := range weights {
		i, ok := f.byName[name]
		if !ok || f.parts[f.Tensors[i].Part].Path != filepath.Join(f.Path, shard) {
			return fault(index, "tensor "+fileerr.Quote(name), "take the index and all shards from one download",
				"is not in %s as the index says", fileerr.Quote(shard))
		}
	}
	return nil
}

// maxIndex bounds the size of the index file: the largest models' have about 100k entries of 100 bytes.
const maxIndex = 100 << 20

// readIndex returns the shard of each tensor.
func readIndex(index string) (map[string]string, error) {
	f, err := infile.Open(index)
	if err != nil {
		return nil, fileerr.Opening("safetensors", index, err)
	}
	defer f.Close()
	if f.Size() > maxIndex {
		return nil, fault(index, "", remedyWrong, "is larger than %d bytes", maxIndex)
	}
	p := &parser{dec: json.NewDecoder(io.NewSectionReader(f, 0, f.Size()))}
	weights := map[string]string{}
	err = p.object(func(key string) error {
		if key != "weight_map" {
			return p.skip()
		}
		return p.object(func(name string) error {
			shard, err := p.str()
			weights[name] = shard
			if len(weights) > maxTensors {
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

// plainName reports whether a shard's name is, on every system, that of a file directly in the folder.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && filepath.IsLocal(s) && !strings.ContainsAny(s, `/\:`+"\x00")
}

// addPart opens a file and adds its tensors.
func (f *File) addPart(path string) error {
	p, err := infile.Open(path)
	if err != nil {
		return fileerr.Opening("safetensors", path, err)
	}
	n := len(f.parts)
	f.parts = append(f.parts, p)
	h, err := parseAny(p)
	if err != nil {
		if e := (*fileerr.Error)(nil); errors.As(err, &e) {
			e.File = path
		}
		return err
	}
	if n == 0 {
		f.Metadata = h.metadata
	}
	for _, t := range h.tensors {
		if j, twice := f.byName[t.Name]; twice {
			return fault(path, "tensor "+fileerr.Quote(t.Name), "take the index and all shards from one download",
				"is also in %s", f.parts[f.Tensors[j].Part].Path)
		}
		t.Part = n
		f.byName[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
	return nil
}

// parseAny parses a file of either kind.
func parseAny(file *infile.File) (*header, error) {
	start := make([]byte, min(file.Size(), int64(len(torch.Magic))))
	if _, err := file.ReadAt(start, 0); err != nil {
		return nil, fault("", "", "", "%w", err)
	}
	if string(start) == torch.Magic {
		return parseTorch(file)
	}
	return parseFile(file)
}

// Rename renames the tensors, except one whose new name another tensor has.
func (f *File) Rename(to func(name string) string) {
	for i := range f.Tensors {
		t := &f.Tensors[i]
		name := to(t.Name)
		if _, taken := f.byName[name]; !taken {
			delete(f.byName, t.Name)
			f.byName[name] = i
			t.Name = name
		}
	}
}

// Replace puts t, whose rows its Reader makes, in place of the named tensor, which holds them as stored.
func (f *File) Replace(name string, t tensor.Tensor, stored tensor.Type) {
	i := f.byName[name]
	delete(f.byName, name)
	f.byName[t.Name] = i
	info := &f.Tensors[i]
	info.Name = t.Name
	info.Type = t.Type
	info.Shape = t.Shape
	info.stored = stored
	info.read = t.Reader
}

// Stored returns the type in the file of a tensor of Replace.
func (f *File) Stored(name string) (t tensor.Type, ok bool) {
	i, ok := f.byName[name]
	if !ok || f.Tensors[i].read == nil {
		return t, false
	}
	return f.Tensors[i].stored, true
}

// Drop removes tensors by their names.
func (f *File) Drop(drop func(name string) bool) {
	f.Tensors = slices.DeleteFunc(f.Tensors, func(t Info) bool { return drop(t.Name) })
	clear(f.byName)
	for i, t := range f.Tensors {
		f.byName[t.Name] = i
	}
}

// CheckInPlace returns an error if one of the files has changed since it was opened, or if another
// file has replaced it: the files are then of different versions. For a folder they are the weights
// and all JSON and template files.
func (f *File) CheckInPlace() error {
	for _, p := range slices.Concat(f.others, f.parts) {
		if err := p.CheckInPlace(); err != nil {
			return fault(p.Path, "", "", "%w", err)
		}
	}
	return nil
}

// Close closes the files.
func (f *File) Close() error {
	var errs []error
	for _, p := range slices.Concat(f.others, f.parts) {
		errs = append(errs, p.Close())
	}
	f.parts, f.others = nil, nil
	return errors.Join(errs...)
}

// Tensor returns the named tensor, whose bytes are read when they are needed. ok is false if no
// tensor has that name. A type that tensor.Dequantize does not read is no error here, but it is in
// Load.
func (f *File) Tensor(name string) (t tensor.Tensor, ok bool) {
	i, ok := f.byName[name]
	if !ok || len(f.parts) == 0 {
		return tensor.Tensor{}, false
	}
	info := &f.Tensors[i]
	t = tensor.Tensor{Name: info.Name, Type: info.Type, Shape: info.Shape}
	if info.Size == 0 { // it has no elements
		t.Data = []byte{}
		return t, true
	}
	t.Reader = f.reader(info, t.RowBytes())
	return t, true
}

// reader returns a function that reads rows of row bytes.
func (f *File) reader(info *Info, row int) func(dst []byte, r0, r1 int) error {
	if info.read != nil {
		return info.read
	}
	p := f.parts[info.Part]
	at, name := info.Offset, info.Name // not info, which Drop moves
	return func(dst []byte, r0, _ int) error {
		if _, err := p.ReadAt(dst, at+int64(r0)*int64(row)); err != nil {
			return fault(p.Path, "tensor "+fileerr.Quote(name), "", "%w", err)
		}
		return nil
	}
}

// Load is Tensor, but returns an error, naming file and tensor, if it is missing or of a type that cannot be read.
func (f *File) Load(name string) (tensor.Tensor, error) {
	field := "tensor " + fileerr.Quote(name)
	t, ok := f.Tensor(name)
	if !ok {
		return t, fault(f.Path, field, "the weights do not belong to this config.json: fetch the model again", "is not in the file")
	}
	if info := f.Tensors[f.byName[name]]; !t.Type.Decodes() {
		return t, fault(f.parts[info.Part].Path, field, "convert the model to F32, F16 or BF16",
			"is of dtype %s, which grove cannot compute with", fileerr.Quote(info.DType))
	}
	return t, nil
}

// LoadElements is Load for a tensor that is read in another order than that of the file: each
// element is a row.
func (f *File) LoadElements(name string) (tensor.Tensor, error) {
	t, err := f.Load(name)
	if err != nil || t.Reader == nil {
		return t, err
	}
	if info := f.Tensors[f.byName[name]]; info.read != nil {
		return t, fault(f.parts[info.Part].Path, "tensor "+fileerr.Quote(name),
			"take a folder of the model in BF16, or a GGUF file",
			"is a matrix of %v whose transpose is wanted", info.stored)
	}
	t.Shape = []int{t.Elements(), 1}
	t.Reader = f.reader(&f.Tensors[f.byName[name]], t.RowBytes())
	return t, nil
}
