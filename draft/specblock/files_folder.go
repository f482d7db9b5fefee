// The Hugging Face form: config.json and safetensors, as the release has it (reference specblock.md §1.10).

package specblock

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
)

// folderConfig is what config.json says of a head beyond its layers; the last five are not in the release's.
type folderConfig struct {
	Block        int  `json:"diffspec_draft_token_num"`
	RankClasses  int  `json:"rank_classes"`
	DraftVocab   int  `json:"draft_vocab_size"`
	HiddenSize   int  `json:"hidden_size"`
	TargetHidden *int `json:"target_hidden_size"`

	Taps         []int     `json:"eagle_aux_hidden_state_layer_ids"`
	TargetLayers int       `json:"num_target_layers"`
	Broadcast    *bool     `json:"prefix_broadcast"`
	SamePosition *bool     `json:"same_position"`
	RankNormed   *bool     `json:"rank_normed"`
	RankOffset   []float32 `json:"rank_offset"`
}

// Check refuses heads that do not run here, before fields that they may not have are missed.
func (f *folderConfig) Check() error {
	switch {
	case f.TargetHidden != nil && *f.TargetHidden != f.HiddenSize:
		return fmt.Errorf("field \"target_hidden_size\" is %d and hidden_size %d: heads narrower or wider than their target are not supported", *f.TargetHidden, f.HiddenSize)
	case f.RankClasses != 0 && f.RankClasses != RankBuckets:
		return fmt.Errorf("field \"rank_classes\" is %d: want %d", f.RankClasses, RankBuckets)
	case f.Block == 0:
		return fmt.Errorf("field \"diffspec_draft_token_num\" is missing: it says how many rows a block has")
	}
	return nil
}

// place is where a folder keeps a tensor: its name, and which columns of it; to 0: all.
type place struct {
	name     string
	from, to int
}

// vocabularyName is a file beside the weights with the draft vocabulary.
const vocabularyName = "vocab_mapping.pt"

// place finds a tensor, by GGUF name.
func (c *Config) place(name string) place {
	h := c.Hidden
	switch name {
	case "fc.weight":
		return place{name: "input_layer.condition_proj.weight"}
	case "cond_norm.weight":
		return place{name: "input_layer.condition_norm.weight"}
	case "token_norm.weight", "query_norm.weight":
		return place{name: "input_layer." + name}
	case "query.weight":
		return place{name: "input_layer.position_queries.weight"}
	case "fuse_cond.weight":
		return place{"input_layer.fuse.weight", 0, h}
	case "fuse_token.weight":
		return place{"input_layer.fuse.weight", h, 2 * h}
	case "fuse_query.weight":
		return place{"input_layer.fuse.weight", 2 * h, 3 * h}
	case "rank_hidden.weight":
		return place{"rank_head.0.weight", 0, h}
	case "rank_features.weight":
		return place{"rank_head.0.weight", h, h + Features}
	case "rank_out.weight":
		return place{name: "rank_head.2.weight"}
	}
	if block, part, ok := strings.Cut(strings.TrimPrefix(name, "blk."), "."); ok {
		switch part {
		case "shift_own.weight":
			return place{"shift_proj." + block + ".weight", 0, h}
		case "shift_prev.weight":
			return place{"shift_proj." + block + ".weight", h, 2 * h}
		}
	}
	hf, _ := model.HFName(model.BlockHead, name) // whose folders name everything else the same
	return place{name: hf}
}

// joined are the parts, in order of columns, of the tensors that folders keep as one.
func joined(layers int) [][]string {
	list := [][]string{{"fuse_cond", "fuse_token", "fuse_query"}, {"rank_hidden", "rank_features"}}
	for i := range layers {
		blk := "blk." + strconv.Itoa(i)
		list = append(list, []string{blk + ".shift_own", blk + ".shift_prev"})
	}
	return list
}

// readFolder reads an open folder.
func (x *File) readFolder() error {
	if !x.Has("input_layer.fuse.weight") {
		return fmt.Errorf("%w: the folder has no tensor input_layer.fuse.weight as such heads have", ErrKind)
	}
	var f folderConfig
	base, err := model.ParseFolder(x.JSON, &f)
	if err != nil {
		return err
	}
	base.Arch, base.Tied = x.LayerArch("layers.0.self_attn.q_norm.weight"), false // whatever model_type says
	set := func(value *bool) bool { return value == nil || *value }               // all are the release's ways
	x.Config = Config{
		Config: base, Block: f.Block, Taps: headfile.Stated(f.Taps), DraftVocab: f.DraftVocab,
		TargetLayers: f.TargetLayers, Shift: x.Has("shift_proj.0.weight"),
		Broadcast: set(f.Broadcast), SamePosition: set(f.SamePosition), RankNormed: set(f.RankNormed),
	}
	if f.RankOffset != nil {
		if err := x.setOffset(f.RankOffset); err != nil {
			return fmt.Errorf("field \"rank_offset\" %w", err)
		}
	}
	if t, ok := x.Tensor("rank_head.0.weight"); ok && len(t.Shape) == 2 {
		x.RankWidth = t.Shape[0]
	}
	if x.DraftVocab == x.Vocab {
		x.DraftVocab = 0
	}
	if x.Tokens, err = x.File.Tokens(x.Vocab); err == nil && x.Tokens == nil && x.DraftVocab > 0 {
		err = x.readVocabulary()
	}
	if err != nil {
		return err
	}
	return x.readTensors()
}

// readVocabulary reads the draft vocabulary from its own file.
func (x *File) readVocabulary() error {
	f, err := safetensors.Open(filepath.Join(x.Dir, vocabularyName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there are neither a tensor %s nor the file %s, which say which tokens the draft vocabulary has: fetch them from where the head came from", headfile.TokensName, vocabularyName)
	} else if err != nil {
		return err
	}
	defer f.Close()
	x.Tokens, err = (&headfile.File{Folder: f}).Tokens(x.Vocab)
	return err
}

// readTensors reads the tensors of a folder.
func (x *File) readTensors() error {
	at := x.somehow()
	if err := at.Validate(); err != nil { // before its numbers size anything
		return err
	}
	used := map[string]bool{headfile.TokensName: true, headfile.MemberName: true}
	for name := range at.shapes() {
		p := at.place(name)
		if !x.Has(p.name) {
			continue // which the check of shapes says
		}
		t, err := x.Load(p.name)
		if err == nil && p.to > 0 {
			t, err = t.Columns(p.from, p.to)
		}
		if err != nil {
			return err
		}
		used[p.name] = true
		t.Name = name
		x.Weights = append(x.Weights, t)
	}
	for _, name := range x.Names() {
		if !used[name] {
			return fmt.Errorf("tensor %s has no place in a SpecBlock head of this shape: this is another kind of head", tensor.Quote(name))
		}
	}
	return nil
}

// fields is config.json.
func (c *Config) fields(typ tensor.Type) (map[string]any, error) {
	layer := c.Config
	layer.Tied = false
	m, err := layer.Fields(typ)
	if err != nil {
		return nil, err
	}
	class := "LlamaForCausalLMSpecBlock"
	if c.Shift {
		class += "Shift"
	}
	m["architectures"] = []string{class}
	m["diffspec_draft_token_num"], m["rank_classes"] = c.Block, RankBuckets
	m["draft_vocab_size"], m["target_hidden_size"] = c.Output(), c.Hidden
	m["prefix_broadcast"] = c.Broadcast
	if c.Taps != nil {
		m["eagle_aux_hidden_state_layer_ids"] = c.Taps
	}
	m["same_position"], m["rank_normed"], m["rank_offset"] = c.SamePosition, c.RankNormed, c.RankOffset
	if c.TargetLayers > 0 {
		m["num_target_layers"] = c.TargetLayers
	}
	return m, nil
}

// WriteFolder writes a head that has the weights, by GGUF name, as a folder: config.json and model.safetensors in F32. tokens are
// those of a draft vocabulary; nil: it is the whole one.
func WriteFolder(dir string, c *Config, weights []tensor.Tensor, tokens []int32) error {
	fields, list, err := c.Folder(weights, tokens, tensor.F32)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return headfile.WriteFolder(dir, fields, list)
}

// Folder is what a folder holds whose matrices are to be of type typ: config.json, and the tensors.
func (c *Config) Folder(weights []tensor.Tensor, tokens []int32, typ tensor.Type) (fields map[string]any, list []headfile.Out, err error) {
	if fields, err = c.fields(typ); err != nil {
		return nil, nil, err
	}
	list, err = c.folderTensors(weights, tokens)
	return fields, list, err
}

// folderTensors are the tensors of a folder.
func (c *Config) folderTensors(weights []tensor.Tensor, tokens []int32) ([]headfile.Out, error) {
	if err := c.check(weights, tokens, nil); err != nil {
		return nil, err
	}
	byName := map[string]tensor.Tensor{}
	for _, w := range weights {
		byName[w.Name] = w
	}
	var list []headfile.Out
	for _, names := range joined(c.Layers) {
		var parts []tensor.Tensor
		for _, name := range names {
			if w, ok := byName[name+".weight"]; ok {
				parts = append(parts, w)
			}
		}
		if parts == nil {
			continue
		}
		t, err := headfile.Join(c.place(names[0]+".weight").name, parts)
		if err != nil {
			return nil, err
		}
		list = append(list, headfile.Out{Tensor: t})
		for _, w := range parts {
			delete(byName, w.Name)
		}
	}
	for _, w := range weights {
		if _, ok := byName[w.Name]; ok {
			w.Name = c.place(w.Name).name
			list = append(list, headfile.Out{Tensor: w})
		}
	}
	return append(list, headfile.FolderTokens(tokens, c.Vocab)...), nil
}
