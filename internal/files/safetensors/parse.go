package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/infile"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/torch"
	"github.com/grovellm/grove/tensor"
)

const (
	maxHeader = 100_000_000 // the format's own limit on the JSON header

	// An entry of the header takes about six times its text in memory, so their number is bounded too:
	// the largest models have 100k tensors.
	maxTensors  = 1 << 18
	maxMetadata = 1 << 16
	maxNesting  = 1000 // of skipped values
)

const (
	remedyCut   = "the file is cut short or damaged: fetch it again"
	remedyWrong = "the file is damaged or was written wrongly: fetch it again"

	metadataName = "__metadata__"
)

var dtypes = map[string]tensor.Type{
	"F64": numtype.F64, "F32": tensor.F32, "F16": tensor.F16, "BF16": tensor.BF16,
	"F8_E4M3": numtype.F8_E4M3, "F8_E5M2": numtype.F8_E5M2,
	"I64": numtype.I64, "I32": numtype.I32, "I16": numtype.I16, "I8": numtype.I8,
	"U64": numtype.U64, "U32": numtype.U32, "U16": numtype.U16, "U8": numtype.U8, "BOOL": numtype.Bool,
}

type header struct {
	metadata map[string]string
	tensors  []Info
}

// fault makes an error of this package.
func fault(file, field, remedy, format string, args ...any) *fileerr.Error {
	return &fileerr.Error{Format: "safetensors", File: file, Field: field, Remedy: remedy,
		Err: fmt.Errorf(format, args...)}
}

// parseFile reads the header of a file: 8 bytes of length, JSON, then the tensors' data without
// gaps. Its errors lack the file.
func parseFile(file *infile.File) (*header, error) {
	size := file.Size()
	if size < 8 {
		return nil, fault("", "header", remedyCut, "the file has %d bytes, not even the 8 of the header's length", size)
	}
	text := make([]byte, 8)
	if _, err := file.ReadAt(text, 0); err != nil {
		return nil, fault("", "header", "", "%w", err)
	}
	n := binary.LittleEndian.Uint64(text)
	switch {
	case n > maxHeader:
		return nil, fault("", "header", "give a .safetensors file",
			"a header of %d bytes is beyond the format's limit of %d: this is not a safetensors file", n, maxHeader)
	case n > uint64(size-8):
		return nil, fault("", "header", remedyCut, "its %d bytes go beyond the end of the file", n)
	}
	text = make([]byte, n)
	if _, err := file.ReadAt(text, 8); err != nil {
		return nil, fault("", "header", "", "%w", err)
	}
	if len(text) == 0 || text[0] != '{' {
		return nil, fault("", "header", "give a .safetensors file", "does not begin with '{': this is not a safetensors file")
	}
	if !utf8.Valid(text) {
		return nil, fault("", "header", remedyWrong, "is not valid UTF-8")
	}
	p := &parser{dec: json.NewDecoder(bytes.NewReader(text)), h: &header{}, seen: map[string]bool{}}
	p.dec.UseNumber()
	if err := p.object(p.entry); err != nil {
		return nil, p.wrap(err)
	}
	if _, err := p.dec.Token(); err != io.EOF { // only spaces may follow
		return nil, fault("", "header", remedyWrong, "has something after its closing brace")
	}
	if err := p.h.place(8+int64(n), size); err != nil {
		return nil, err
	}
	return p.h, nil
}

// parser walks the JSON token by token: encoding/json into a map would hide a name that occurs twice.
type parser struct {
	dec  *json.Decoder
	h    *header
	seen map[string]bool
}

func (p *parser) wrap(err error) error {
	if _, ok := err.(*fileerr.Error); ok {
		return err
	}
	return fault("", "header", remedyWrong, "is not valid JSON: %w", err)
}

func (p *parser) delim(want json.Delim) error {
	t, err := p.dec.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("%v where %v is expected", t, want)
	}
	return nil
}

// object calls f for each key of an object. f must consume the key's value.
func (p *parser) object(f func(key string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return fmt.Errorf("%v where a name is expected", t)
		}
		if err := f(key); err != nil {
			return err
		}
	}
	return p.delim('}')
}

func (p *parser) str() (string, error) {
	t, err := p.dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%v where a string is expected", t)
	}
	return s, nil
}

// skip skips a value of any kind.
func (p *parser) skip() error {
	for depth := 0; ; {
		t, err := p.dec.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth > maxNesting {
			return fmt.Errorf("values nested to a depth of more than %d", maxNesting)
		}
		if depth <= 0 {
			return nil
		}
	}
}

// ints reads an array of integers from 0 to the largest int.
func (p *parser) ints(atMost int) ([]int, error) {
	if err := p.delim('['); err != nil {
		return nil, err
	}
	out := []int{}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		n, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%v where a number is expected", t)
		}
		v, err := strconv.ParseUint(n.String(), 10, 64)
		if err != nil || v > math.MaxInt {
			return nil, fmt.Errorf("%v is not an integer from 0 to %d", n, math.MaxInt)
		}
		if len(out) == atMost {
			return nil, fmt.Errorf("more than %d numbers", atMost)
		}
		out = append(out, int(v))
	}
	return out, p.delim(']')
}

// entry reads a top-level entry: the metadata or a tensor.
func (p *parser) entry(name string) error {
	field := "tensor " + fileerr.Quote(name)
	if p.seen[name] {
		return fault("", field, remedyWrong, "occurs twice")
	}
	p.seen[name] = true
	if name == metadataName {
		return p.metadata()
	}
	t := Info{Name: name}
	var offsets []int
	err := p.object(func(key string) (err error) {
		switch key {
		case "dtype":
			if t.DType != "" {
				return fmt.Errorf("%q occurs twice", key)
			}
			t.DType, err = p.str()
		case "shape":
			if t.Shape != nil {
				return fmt.Errorf("%q occurs twice", key)
			}
			t.Shape, err = p.ints(64)
		case "data_offsets":
			if offsets != nil {
				return fmt.Errorf("%q occurs twice", key)
			}
			offsets, err = p.ints(2)
		default:
			err = p.skip()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return fault("", field, remedyWrong, "%w", err)
	case t.DType == "" || t.Shape == nil || len(offsets) != 2:
		return fault("", field, remedyWrong, "lacks dtype, shape or two data_offsets")
	case offsets[0] > offsets[1]:
		return fault("", field, remedyWrong, "its data_offsets %v run backwards", offsets)
	}
	t.Offset, t.Size = int64(offsets[0]), int64(offsets[1]-offsets[0])
	if err := t.setType(); err != nil {
		return fault("", field, remedyWrong, "%w", err)
	}
	p.h.tensors = append(p.h.tensors, t)
	if len(p.h.tensors) > maxTensors {
		return fault("", "header", remedyWrong, "has more than %d tensors", maxTensors)
	}
	return nil
}

// setType finds the dtype and checks that the shape matches the number of bytes. Tensors without elements are legal.
func (t *Info) setType() error {
	typ, ok := dtypes[t.DType]
	if !ok {
		t.Type = numtype.Unknown // listed; an error for whoever asks for it
		return nil
	}
	t.Type = typ
	elements := 0
	if !slices.Contains(t.Shape, 0) {
		var err error
		if elements, err = numtype.CountElements(t.Shape); err != nil {
			return err
		}
	}
	size, err := typ.Size(elements)
	if err != nil {
		return err
	}
	if int64(size) != t.Size {
		return fmt.Errorf("shape %v of %s takes %d bytes, its data_offsets span %d", t.Shape, t.DType, size, t.Size)
	}
	return nil
}

func (p *parser) metadata() error {
	p.h.metadata = map[string]string{}
	err := p.object(func(key string) error {
		if _, twice := p.h.metadata[key]; twice {
			return fmt.Errorf("%q occurs twice", key)
		}
		s, err := p.str()
		p.h.metadata[key] = s
		if len(p.h.metadata) > maxMetadata {
			return fmt.Errorf("more than %d entries", maxMetadata)
		}
		return err
	})
	if err != nil {
		return fault("", metadataName, remedyWrong, "want an object of strings: %w", err)
	}
	return nil
}

// place sorts the tensors by offset, checks that together they cover the data exactly, as the
// format demands, and converts offsets to positions in the file.
func (h *header) place(start, fileSize int64) error {
	slices.SortFunc(h.tensors, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	end := int64(0)
	for i := range h.tensors {
		t := &h.tensors[i]
		field := "tensor " + fileerr.Quote(t.Name)
		switch {
		case t.Offset < end:
			return fault("", field, remedyWrong, "its data at %d overlaps that of another tensor, which ends at %d", t.Offset, end)
		case t.Offset > end:
			return fault("", field, remedyWrong, "its data begins at %d, but the tensors before it end at %d", t.Offset, end)
		case t.Size > fileSize-start-end:
			return fault("", field, remedyCut, "its %d bytes at %d+%d go beyond the end of the file at %d", t.Size,
				start, t.Offset, fileSize)
		}
		end += t.Size
		t.Offset += start
	}
	if rest := fileSize - start - end; rest != 0 {
		return fault("", "header", remedyWrong, "%d bytes at the end of the file belong to no tensor", rest)
	}
	return nil
}

// parseTorch is parseFile for a PyTorch file. Its errors lack the file.
func parseTorch(file *infile.File) (*header, error) {
	list, err := torch.Parse(file, file.Size())
	if err != nil {
		return nil, fault("", "", "save the weights as safetensors, or fetch the file again", "%w", err)
	}
	h := &header{}
	for _, t := range list {
		dtype, _ := dtypeOf(t.Type)
		h.tensors = append(h.tensors, Info{Name: t.Name, DType: dtype, Type: t.Type, Shape: t.Shape,
			Offset: t.Offset, Size: t.Size})
	}
	return h, nil
}
