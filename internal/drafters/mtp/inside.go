// Heads in the files of their targets: GGUF with llama.cpp's nextn tensors, and folders with
// Qwen's, MiMo's or DeepSeek's names. Folders of vLLM's speculators (FastMTP) have only the layer,
// and the target's configuration.

package mtp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// ReadInside reads the layer that follows the target's. A GGUF file does not give the order of the
// layer's inputs: it is MiMo's if the layers are Qwen 2's, as MiMo's are, and otherwise Qwen's.
func (c *Config) ReadInside(x *headfile.File) (weights []tensor.Tensor, err error) {
	var target model.Config
	stateFirst := false
	if x.GGUF == nil {
		if target, err = folderTarget(x); err == nil {
			weights, stateFirst, err = fromFolder(x, &target)
		}
	} else if target, err = readTarget(x); err == nil {
		weights, err = fromGGUF(x, target.Layers)
		stateFirst = target.Arch == "qwen2"
	}
	switch {
	case err != nil:
		return nil, err
	case model.Alike(target.Arch):
	case target.Window > 0 || target.Rope.Long != nil:
		return nil, fmt.Errorf("windows and longrope are not supported in an MTP head")
	default:
		target.Arch = "llama"
		for _, t := range weights {
			if t.Name == "blk.0.attn_q_norm.weight" {
				target.Arch = "qwen3"
			}
		}
	}
	target.Ahead = 1 // of several, the first drafts at every depth
	*c = behind(target)
	c.Taps, c.StateFirst = []int{target.Layers}, stateFirst
	c.Unnormed = model.Alike(target.Arch) && target.AheadNames(0).Unnormed
	return weights, nil
}

// Like reports whether a file has only the layer, in the form that its target's file would have it.
func (*Config) Like(x *headfile.File) bool {
	if x.GGUF != nil {
		return model.AheadAlone(x.GGUF)
	}
	return x.Has(model.SpeculatorsAhead.Start + model.SpeculatorsAhead.Fuse + ".weight")
}

// folderTarget returns the target of a folder, or what a folder of only the layer says of the target.
func folderTarget(x *headfile.File) (target model.Config, err error) {
	if x.Target != nil {
		return *x.Target, nil
	}
	target, err = model.ParseFolder(x.JSON, &struct{}{})
	target.Ahead = 1
	return target, err
}

// readTarget returns what a GGUF file says of the target. The file may have only the layer.
func readTarget(x *headfile.File) (target model.Config, err error) {
	name, _ := gguf.Get[string](x.GGUF, "general.architecture")
	if !model.Runs(name) {
		return target, kind.Refuse("general.architecture is %q: want a model's", name)
	}
	target, err = model.ReadGGUFKeys(x.GGUF, name, name)
	if err == nil && target.Ahead == 0 {
		err = kind.Refuse("the model has no layer behind its own (key %q)", name+".nextn_predict_layers")
	}
	if v, ok := x.GGUF.Lookup("tokenizer.ggml.tokens"); ok && target.Vocab == 0 {
		target.Vocab = v.Len()
	}
	return target, err
}

// fromGGUF returns the tensors of layer from, as layer 0.
func fromGGUF(x *headfile.File, from int) (weights []tensor.Tensor, err error) {
	for _, info := range x.GGUF.Tensors {
		part, ok := strings.CutPrefix(info.Name, fmt.Sprintf("blk.%d.", from))
		if !ok {
			continue
		}
		t, err := x.GGUF.Load(info.Name)
		if err != nil {
			return nil, err
		}
		if part == "ffn_gate_inp_shexp.weight" { // a single row
			t.Shape = []int{1, t.Elements()}
		}
		if weights, err = add(weights, x, t, part); err != nil {
			return nil, err
		}
	}
	return weights, nil
}

// fromFolder returns the tensors of the first layer after the target's.
func fromFolder(x *headfile.File, target *model.Config) (weights []tensor.Tensor, stateFirst bool, err error) {
	names, ok := target.AheadIn(x.Folder)
	if !ok {
		return nil, false, kind.Refuse("the folder has no layer after the model's")
	}
	used := map[string]bool{"verifier_lm_head.weight": true} // of the target, for training
	for _, p := range target.AheadParts(0, names) {
		endings := []string{p.Ending}
		if !p.Bare {
			endings = append(endings, ".bias")
		}
		for _, ending := range endings {
			t, from, err := p.FromFolder(x.Folder, ending)
			switch {
			case err != nil:
				return nil, false, err
			case from == nil && ending == p.Ending && !p.Optional:
				return nil, false, fmt.Errorf("tensor %s is missing: the folder is incomplete", p.InFolder(ending))
			case from == nil:
				continue
			}
			for _, name := range from {
				used[name] = true
			}
			if p.Shift != 0 {
				if t, err = reshape.Shifted(t, p.Shift); err != nil {
					return nil, false, err
				}
			}
			layer, part, _ := strings.Cut(strings.TrimPrefix(p.Name, "blk."), ".")
			if layer != strconv.Itoa(target.Layers) {
				t.Name = "blk.1." + part + ending // the second layer of Nemotron's head
				weights = append(weights, t)
			} else if weights, err = add(weights, x, t, part+ending); err != nil {
				return nil, false, err
			}
		}
	}
	for _, name := range x.Names() {
		if (x.Target == nil || strings.HasPrefix(name, names.Start)) && !used[name] {
			return nil, false, fmt.Errorf("tensor %s does not belong to the %s that the file describes",
				fileerr.Quote(name), kind.Name)
		}
	}
	return weights, names == model.MiMoAhead, nil
}

// add adds a tensor of the layer, unless it is a copy of the target's.
func add(weights []tensor.Tensor, x *headfile.File, t tensor.Tensor, part string) ([]tensor.Tensor, error) {
	own := map[string]string{model.AheadEmbed + ".weight": "token_embd.weight", model.AheadHead +
		".weight": "output.weight"}
	name, ok := own[part]
	if !ok {
		t.Name = "blk.0." + part
		if part == model.AheadOutput+".weight" {
			t.Name = outputNorm
		}
		return append(weights, t), nil
	}
	called := name
	if x.GGUF == nil && x.Target != nil {
		called, _ = model.HFName(x.Target.Arch, name)
	}
	if targets, ok := x.Tensor(called); ok {
		if same, err := alike(t, targets); same || err != nil {
			return weights, err
		}
	}
	t.Name = name
	return append(weights, t), nil
}

// alike compares some rows of two tables to tell whether they are the same. Published layers have
// copies of their target's tables; tables that were trained separately differ in all rows.
func alike(a, b tensor.Tensor) (bool, error) {
	const rows = 64
	if a.Type != b.Type || a.Rows() != b.Rows() || a.RowBytes() != b.RowBytes() {
		return false, nil
	}
	x, y := make([]byte, a.RowBytes()), make([]byte, a.RowBytes())
	for i := range rows {
		r := i * a.Rows() / rows
		if err := errors.Join(a.ReadRows(x, r, r+1), b.ReadRows(y, r, r+1)); err != nil {
			return false, err
		}
		if !bytes.Equal(x, y) {
			return false, nil
		}
	}
	return true, nil
}
