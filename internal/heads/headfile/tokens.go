package headfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/tensor"
)

// The tensors that define a draft vocabulary. The first gives the token of each entry: its id in
// GGUF, the id minus the entry's index in folders. The second, only in folders, says of each token
// whether it belongs to the vocabulary.
const (
	TokensName = "d2t"
	MemberName = "t2d"
)

// plainName is the name of the list in folders of vLLM's Medusa heads, where it has the ids themselves.
const plainName = "token_map"

// Tokens reads the draft vocabulary of a file; nil if it has none, or has all tokens in order.
func (f *File) Tokens(vocab int) ([]int32, error) {
	t, ok := f.Tensor(TokensName)
	offset := f.GGUF == nil
	if !ok && offset {
		t, ok = f.Tensor(plainName)
		offset = false
	}
	if !ok {
		return nil, nil
	}
	var member tensor.Tensor
	if f.GGUF == nil {
		member, _ = f.Tensor(MemberName)
	}
	var err1, err2 error
	t, err1 = t.ReadAll()
	member, err2 = member.ReadAll()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return readTokens(t, member, offset, vocab)
}

// load is Load, with whole numbers converted to F32; see Numbers.
func (f *File) load(name string) (tensor.Tensor, error) {
	t, ok := f.Tensor(name)
	if !ok || t.Type != numtype.I64 && t.Type != numtype.I32 {
		return f.Load(name)
	}
	t, err := t.ReadAll()
	if err != nil {
		return t, err
	}
	if err := t.Check(); err != nil {
		return t, err
	}
	wide := make([]float32, t.Elements())
	for i := range wide {
		v := whole(t, i)
		wide[i] = float32(v)
		if int64(wide[i]) != v {
			return t, fmt.Errorf("tensor %s: entry %d is %d: the limit is %d", fileerr.Quote(name), i, v, 1<<24)
		}
	}
	return tensor.FromFloat32s(name, tensor.F32, t.Shape, wide)
}

func readTokens(t, member tensor.Tensor, offset bool, vocab int) ([]int32, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if len(t.Shape) != 1 || t.Type != numtype.I64 && t.Type != numtype.I32 {
		return nil, fmt.Errorf("tensor %s has shape %v and type %v: want a list of I64", t.Name, t.Shape, t.Type)
	}
	list, all := make([]int32, t.Shape[0]), t.Shape[0] == vocab
	for i := range list {
		n := whole(t, i)
		if offset {
			n += int64(i)
		}
		if n < 0 || n >= int64(vocab) {
			return nil, fmt.Errorf("tensor %s: entry %d names token %d: want 0 to %d", t.Name, i, n, vocab-1)
		}
		all = all && n == int64(i)
		list[i] = int32(n)
		if member.Type == numtype.Bool && len(member.Data) == vocab && member.Data[n] == 0 {
			return nil, fmt.Errorf("tensors %s and %s disagree: entry %d of the first names token %d, which is not in the second", t.Name, member.Name, i, n)
		}
	}
	if all {
		return nil, nil
	}
	return list, nil
}

// whole returns element i of an I64 or I32 tensor.
func whole(t tensor.Tensor, i int) int64 {
	if t.Type == numtype.I64 {
		return int64(binary.LittleEndian.Uint64(t.Data[8*i:]))
	}
	return int64(int32(binary.LittleEndian.Uint32(t.Data[4*i:])))
}

// FolderTokens returns the tensors of a draft vocabulary in a folder.
func FolderTokens(tokens []int32, vocab int) []Out {
	if tokens == nil {
		return nil
	}
	member := tensor.Tensor{Name: MemberName, Type: numtype.Bool, Shape: []int{vocab}, Data: make([]byte, vocab)}
	for _, t := range tokens {
		member.Data[t] = 1
	}
	return []Out{{Tensor: numbers(tokens, 1)}, {Tensor: member}}
}

// numbers returns a list in the form that files have it: each entry minus step times its index.
func numbers(list []int32, step int64) tensor.Tensor {
	var data []byte
	for i, n := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(int64(n)-step*int64(i)))
	}
	return tensor.Tensor{Name: TokensName, Type: numtype.I64, Shape: []int{len(list)}, Data: data}
}
