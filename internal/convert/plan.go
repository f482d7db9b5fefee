package convert

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
)

// layout is the configuration of a model, which says where both formats place its rows.
type layout struct{ model.Config }

// entry is a tensor of a model: its name in both formats, without .weight or .bias.
type entry struct {
	gguf, hf string
	rows     reordering
	optional bool
}

// reordering says how a tensor's rows differ between the formats.
type reordering uint8

const (
	sameRows  reordering = iota
	queryRows            // llama's rotated projections
	keyRows
	fusedRows // GPT-NeoX's query_key_value
)

// The tensors of a model, by GGUF's names, in the order of a GGUF file.
var (
	top    = []string{"token_embd", "output_norm", "output"}
	blocks = map[string][]string{
		"": {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_q_norm", "attn_k_norm", "attn_output",
			"ffn_norm", "ffn_gate", "ffn_up", "ffn_down"},
		"gptneox": {"attn_norm", "attn_qkv", "attn_output", "ffn_norm", "ffn_up", "ffn_down"},
	}
)

// plan lists a model's tensors in the order of a GGUF file.
func (l *layout) plan() []entry {
	block, ok := blocks[l.Arch]
	if !ok {
		block = blocks[""]
	}
	var es []entry
	add := func(e entry) {
		hf, _ := model.HFName(l.Arch, e.gguf+".weight")
		e.hf = strings.TrimSuffix(hf, ".weight")
		es = append(es, e)
	}
	for _, name := range top {
		add(entry{gguf: name, optional: name == "output"})
	}
	for i := range l.Layers {
		for _, name := range block {
			e := entry{gguf: fmt.Sprintf("blk.%d.%s", i, name)}
			switch name {
			case "attn_q":
				if l.Arch == "llama" {
					e.rows = queryRows
				}
			case "attn_k":
				if l.Arch == "llama" {
					e.rows = keyRows
				}
			case "attn_qkv":
				e.rows = fusedRows
			case "attn_q_norm", "attn_k_norm":
				if l.Arch != "qwen3" {
					continue
				}
			}
			add(e)
		}
	}
	return es
}

// rowsOf is the number of rows that a reordering is made for; 0 for any.
func (l *layout) rowsOf(r reordering) int {
	switch r {
	case queryRows:
		return l.Heads * l.HeadDim
	case keyRows:
		return l.KVHeads * l.HeadDim
	case fusedRows:
		return 3 * l.Heads * l.HeadDim
	}
	return 0
}

// toGGUF returns which row of the Hugging Face tensor is row i of GGUF's; nil where they are the same.
func (l *layout) toGGUF(r reordering) func(int) int {
	d := l.HeadDim
	switch r {
	case queryRows, keyRows: // GGUF rotates (2i, 2i+1) together, Hugging Face (i, i+d/2)
		return headfile.Pairs(d)
	case fusedRows: // (part, head, d) from (head, part, d)
		return func(i int) int {
			part, head := i/(l.Heads*d), i/d%l.Heads
			return (3*head+part)*d + i%d
		}
	}
	return nil
}

// toHF is the inverse.
func (l *layout) toHF(r reordering) func(int) int {
	d := l.HeadDim
	switch r {
	case queryRows, keyRows:
		return headfile.Halves(d)
	case fusedRows:
		return func(i int) int {
			head, part := i/(3*d), i/d%3
			return (part*l.Heads+head)*d + i%d
		}
	}
	return nil
}
