package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Head is the architecture of a drafter's head for HFName: its folders have no prefix before the layers.
const Head = "head"

var headArchs []string

// RegisterHeads adds architectures of GGUF files that hold a drafter's head but no model. It must be called from init.
func RegisterHeads(archs ...string) { headArchs = append(headArchs, archs...) }

// IsHead reports whether an architecture is that of a head.
func IsHead(arch string) bool { return slices.Contains(headArchs, arch) }

// TargetLayersKey is the key in a head's GGUF file for the number of layers of the target for which
// the head was made. Only grove uses it.
const TargetLayersKey = "grove.target.block_count"

// ErrHead is the error for a file or folder that holds a drafter's head but no model.
var ErrHead = errors.New("the file is a drafter's head, not a model: open the model it drafts for, with this head (--head FILE)")

// headArch is a drafter's head: layers of qwen3 under other names.
var headArch = architecture{
	prefix: "layers.",
	top: []part{
		{name: "fc", folder: "fc"},
		{name: "enc.output_norm", folder: "hidden_norm"},
		{name: "output_norm", folder: "norm"},
		{name: "token_embd", folder: "embed_tokens"},
		{name: "output", folder: "lm_head"},
	},
	layer: qwen3.layer,
}

// RouterName is the ending of the names of matrices that choose experts. Files have them in F32.
const RouterName = ".ffn_gate_inp.weight"

// InF32 reports whether files have a matrix in F32 whatever their type: one that chooses experts,
// or that is not used in a product.
func InF32(name string) bool {
	return slices.ContainsFunc(
		[]string{
			RouterName, ".ffn_gate_inp_shexp.weight", ".shortconv.conv.weight", ".ssm_conv1d.weight",
			".ssm_conv1d_q.weight", ".ssm_conv1d_k.weight", ".ssm_conv1d_v.weight", ".ssm_a", ".ssm_d",
			".ssm_norm.weight", ".attn_q_norm.weight", ".attn_k_norm.weight",
			".altup_predict_coef.weight", ".altup_correct_coef.weight",
		},
		func(ending string) bool { return strings.HasSuffix(name, ending) })
}

// HFName translates a GGUF tensor name of an architecture; ok is false for tensors that folders do not have.
func HFName(arch, name string) (string, bool) {
	a := archNamed(arch)
	switch {
	case arch == Head:
		a = &headArch
	case a == nil:
		a = &qwen3
	}
	return a.folderName(name)
}

// folderName translates a GGUF tensor name, including its ending.
func (a *architecture) folderName(name string) (string, bool) {
	prefix := ""
	if layer, part := layerPart(name); layer >= 0 {
		name, prefix = part, fmt.Sprintf("%s%d.", a.prefix, layer)
	}
	stem, ending := splitName(name)
	p := a.findTensor(stem, ending, func(part) bool { return true })
	if p == nil {
		return "", false
	}
	x := Part{Folder: prefix + p.folder, Param: p.param, Bare: p.bare}
	return x.InFolder(ending), true
}
