package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/infile"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/files/torch"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/model"
)

// readContents describes the file or folder at path. tensors lists each of them, full keeps
// metadata arrays and long strings whole.
func readContents(path string, tensors, full bool) (*contents, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readFolder(path, tensors, full)
	}
	f, err := infile.Open(path)
	if err != nil {
		return nil, err
	}
	var head [9]byte
	n := int(min(f.Size(), int64(len(head))))
	_, err = f.ReadAt(head[:n], 0)
	f.Close()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case n == 0:
		return nil, fmt.Errorf("%s: the file is empty: download or write it again", path)
	case bytes.HasPrefix(head[:n], []byte("GGUF")):
		return readGGUF(path, tensors, full)
	case n == 9 && head[8] == '{' || strings.HasSuffix(path, ".safetensors"):
		return readSafetensors(path, "safetensors", tensors, full)
	case bytes.HasPrefix(head[:n], []byte(torch.Magic)):
		return readSafetensors(path, "PyTorch", tensors, full)
	}
	return nil, fmt.Errorf("%s: neither a GGUF, a safetensors nor a PyTorch file (it starts with %q): give one of these, or a Hugging Face folder", path, head[:min(n, 4)])
}

func readGGUF(path string, tensors, full bool) (*contents, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &contents{File: path, Format: fmt.Sprintf("GGUF v%d", f.Version), Metadata: []metaEntry{}}
	c.Architecture, _ = gguf.Get[string](f, "general.architecture")
	c.Name, _ = gguf.Get[string](f, "general.name")
	for key, v := range f.Meta() {
		e := metaEntry{Key: key, Type: v.Type(), Value: plainValue(v, full), text: v.String()}
		if elem, array := strings.CutPrefix(v.Type(), "[]"); array {
			e.Type = fmt.Sprintf("%s[%d]", elem, v.Len())
		}
		if text, ok := gguf.As[string](v); ok {
			e.text = shorten(text, full)
		} else if full {
			e.text = compactJSON(e.Value)
		}
		c.Metadata = append(c.Metadata, e)
	}
	if model.IsHead(c.Architecture) {
		c.noteHead(path)
	}
	if n, ok := gguf.Get[uint64](f, model.PaddingKey); ok {
		c.Padding = int64(n)
		c.note("padded: %s of its parameters only add to the cost of a pass", command.Count(c.Padding))
	}
	for _, t := range f.Tensors {
		c.Parts = max(c.Parts, t.Part+1)
		c.addTensor(tensorEntry{t.Name, t.Type.String(), t.Shape, t.Size, t.Part}, tensors)
		if !t.Type.Decodes() && !isList(t.Name) {
			c.note("%s is of type %v, which grove does not run", fileerr.Quote(t.Name), t.Type)
		}
	}
	if c.Bytes, err = fileBytes(path, c.Parts); err == nil && !model.IsHead(c.Architecture) {
		c.addMemory(path)
	}
	return c, err
}

// isList reports whether a tensor in a head's file is a list of tokens, and not weights.
func isList(name string) bool {
	return name == headfile.TokensName || name == headfile.MemberName || name == "masked_embedding.token_ordering"
}

// few is the number of elements shown of a long array.
const few = 6

// plainValue converts a metadata value to one that encodes as JSON. A long array, unless full is
// set, becomes its length and first elements.
func plainValue(v gguf.Value, full bool) any {
	if vs, ok := gguf.As[[]gguf.Value](v); ok {
		n := len(vs)
		show := n
		if !full && n > 2*few {
			show = few
		}
		out := make([]any, show)
		for i := range out {
			out[i] = plainValue(vs[i], full)
		}
		if len(out) < n {
			return map[string]any{"length": n, "first": out}
		}
		return out
	}
	if b, ok := gguf.As[bool](v); ok {
		return b
	}
	if s, ok := gguf.As[string](v); ok {
		return s
	}
	if n, ok := gguf.As[int64](v); ok {
		return n
	}
	if n, ok := gguf.As[uint64](v); ok {
		return n
	}
	f, _ := gguf.As[float64](v)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Sprint(f) // JSON has no number for it
	}
	if v.Type() == "f32" {
		return float32(f)
	}
	return f
}

// readSafetensors describes a file that has only tensors, in the named format.
func readSafetensors(path, format string, tensors, full bool) (*contents, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &contents{File: path, Format: format, Metadata: []metaEntry{}}
	c.addSafetensors(f, tensors, full)
	c.noteTypes(f)
	c.Bytes, err = fileBytes(path, 1)
	return c, err
}

func (c *contents) addSafetensors(f *safetensors.File, tensors, full bool) {
	for _, k := range slices.Sorted(maps.Keys(f.Metadata)) {
		c.Metadata = append(c.Metadata, metaEntry{k, "str", f.Metadata[k], shorten(f.Metadata[k], full)})
	}
	for _, t := range f.Tensors {
		c.Parts = max(c.Parts, t.Part+1)
		c.Bytes += t.Size
		c.addTensor(tensorEntry{t.Name, t.DType, t.Shape, t.Size, t.Part}, tensors)
	}
}

// noteTypes notes tensors that grove does not run.
func (c *contents) noteTypes(f *safetensors.File) {
	for _, t := range f.Tensors {
		if !t.Type.Decodes() && !isList(t.Name) {
			c.note("%s is of type %s, which grove does not run", fileerr.Quote(t.Name), t.DType)
		}
	}
}

func readFolder(path string, tensors, full bool) (*contents, error) {
	c := &contents{File: path, Format: "Hugging Face folder", Metadata: []metaEntry{}}
	name := filepath.Join(path, "config.json")
	data, err := model.ReadFolderFile(path)
	if err != nil {
		return nil, err
	}
	if err := c.addConfig(data, full); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f, err := safetensors.OpenFolder(path, headfile.FileNames()...)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := heads.Is(registry.Head{Name: path})
	if head {
		c.noteHead(path) // its tokens are its target's
	} else if lower.TokenizerFile(path) == "" {
		c.note("no tokenizer: the model reads and writes token ids only")
	}
	c.addSafetensors(f, tensors, full)
	if !head {
		c.addMemory(path)
	}
	if c.Memory == nil { // a model that runs may have types that are decoded when it is opened
		c.noteTypes(f)
	}
	return c, nil
}

// addConfig adds config.json, in its own order.
func (c *contents) addConfig(data []byte, full bool) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	} else if t != json.Delim('{') {
		return fmt.Errorf("it holds no JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
		var v any
		if err := d.Decode(&v); err != nil {
			return fmt.Errorf("field %q: %w", key, err)
		}
		e := metaEntry{Key: key.(string), Type: "json", Value: v, text: clip(compactJSON(v), full)}
		if e.Key == "model_type" {
			c.Architecture, _ = v.(string)
		}
		c.Metadata = append(c.Metadata, e)
	}
	_, err := d.Token()
	return err
}

// noteHead notes what a drafter's head is, or why grove does not run it.
func (c *contents) noteHead(path string) {
	text, err := heads.Describe(registry.Head{Name: path})
	if err != nil {
		c.note("it is a draft head that grove cannot run: %v", err)
		return
	}
	c.note("a drafter's head. %s", text)
}

// note adds a remark. It drops those beyond a few: they are of the same kind.
func (c *contents) note(format string, args ...any) {
	if len(c.Notes) < few {
		c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
	}
}

func compactJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

// shorten makes text a single line that a terminal can show.
func shorten(text string, full bool) string { return command.PlainText(clip(text, full)) }

// clip cuts long text, unless it is wanted in full.
func clip(text string, full bool) string {
	const most = 100
	if len(text) <= most || full {
		return text
	}
	n := most
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + " …"
}

// fileBytes returns the size of the file at path, or of all parts of a split one.
func fileBytes(path string, parts int) (int64, error) {
	var total int64
	for i := range max(1, parts) {
		info, err := os.Stat(strings.Replace(path, "-00001-of-", fmt.Sprintf("-%05d-of-", i+1), 1))
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}
