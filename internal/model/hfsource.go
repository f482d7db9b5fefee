// Hugging Face folders as a source of models' weights: safetensors, and the tokenizer next to them.

package model

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strings"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/infile"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

type hfSource struct {
	dir string
	c   Config
	*safetensors.File
	joined map[string]bool // the tensors that are part of another one
}

func openHF(dir string) (source, error) {
	c, f, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	return &hfSource{dir: dir, c: c, File: f, joined: map[string]bool{}}, nil
}

// OpenFolder reads the configuration of a Hugging Face folder and opens its tensors. It refuses
// tensors that transformers, following config.json, would ignore: biases, and an output matrix that
// is tied to the embedding but differs from it.
func OpenFolder(dir string) (Config, *safetensors.File, error) {
	f, noWeights := safetensors.OpenFolder(dir) // before anything else in the folder is read: see CheckInPlace
	c, fields, err := readFolder(dir)
	if err == nil {
		err = noWeights
	}
	if err == nil && fields.ModelType == apertus.modelType {
		err = c.readXIELU(f)
	}
	if err == nil {
		err = c.readPooling(dir)
	}
	if err == nil {
		_, bare := f.Tensor("embed_tokens.weight")
		if !bare {
			_, bare = f.Tensor("wte.weight")
		}
		if fields.nested || bare {
			f.Rename(textName)
			_, own := f.Tensor("lm_head.weight")
			switch outer := fields.OuterTied; {
			case !own && (bare || outer != nil && *outer):
				c.Tied = true
			case own && outer != nil && !*outer:
				c.Tied = false // whatever text_config says, as in transformers
			}
		}
		c.countAhead(f)
		decoded := error(nil)
		if a := c.arch(); a.rounded {
			decoded = decodeTernary(f, a, fields.Quantization)
		} else {
			decoded = decodeFolder(f, fields.Quantization)
		}
		if err = errors.Join(decoded, checkTied(&c, f), fields.checkBiases(&c, f)); err != nil {
			err = named(dir, err)
		}
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return c, nil, err
	}
	return c, f, nil
}

// PoolingFile is the file in a folder that defines how sentence-transformers makes an embedding from a text's states.
const PoolingFile = "1_Pooling/config.json"

func (c *Config) readPooling(dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(PoolingFile))
	data, err := infile.ReadFile(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var pooling struct {
		Last bool `json:"pooling_mode_lasttoken"`
		Mode any  `json:"pooling_mode"` // in newer versions
	}
	if err == nil {
		err = decode(data, &pooling)
	}
	if err != nil {
		return named(path, err)
	}
	c.PoolLast = pooling.Last || pooling.Mode == "lasttoken"
	return nil
}

// checkTied refuses an output matrix that differs from the embedding to which it is tied.
func checkTied(c *Config, f *safetensors.File) error {
	embedding, _ := HFName(c.Arch, "token_embd.weight")
	output, _ := HFName(c.Arch, "output.weight")
	if _, ok := f.Tensor(output); !ok || !c.Tied {
		return nil
	}
	x, err := f.Load(output)
	if err != nil {
		return err
	}
	y, err := f.Load(embedding)
	if err != nil {
		return err
	}
	same, err := reshape.Equal(x, y)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("tensor %s differs from %s, and config.json ties the two: "+
			"set \"tie_word_embeddings\" to false if the model has both", output, embedding)
	}
	return nil
}

// checkBiases refuses a bias that config.json does not declare.
func (h *hfConfig) checkBiases(c *Config, f *safetensors.File) error {
	given := map[string]bool{"": true, "attention_bias": h.AttentionBias, "mlp_bias": h.MLPBias, "use_qkv_bias": h.QKVBias,
		"attention_out_bias": h.OutBias, "use_bias": h.UseBias, "mamba_conv_bias": h.MambaConvBias,
		"use_conv_bias": h.UseConvBias, "lm_head_bias": h.HeadBias}
	fields := h.arch().folderBiases(c)
	for _, t := range f.Tensors {
		if !strings.HasSuffix(t.Name, ".bias") || Follows(t.Name) || c.Spare(t.Name) || c.ahead(t.Name) {
			continue
		}
		field, ok := fields[t.Name]
		switch {
		case !ok:
			return fmt.Errorf("tensor %s: %s models do not have this bias: take a model without it",
				fileerr.Quote(t.Name), h.ModelType)
		case !given[field]:
			return fmt.Errorf("tensor %s: config.json does not give the model this bias: "+
				"set %q to true if the model has it", fileerr.Quote(t.Name), field)
		}
	}
	return nil
}

// Follows reports whether a tensor of a Hugging Face folder follows from the configuration, or
// belongs to a vision or audio tower.
func Follows(name string) bool {
	return OfTower(name) || strings.HasSuffix(name, ".rotary_emb.inv_freq") ||
		strings.HasSuffix(name, ".attn.bias") || strings.HasSuffix(name, ".attn.masked_bias") ||
		strings.HasSuffix(name, ".attention.bias") || strings.HasSuffix(name, ".attention.masked_bias")
}

func (s *hfSource) names() (list []string) {
	output, _ := HFName(s.c.Arch, "output.weight")
	for _, t := range s.Tensors {
		if !Follows(t.Name) && !s.c.ahead(t.Name) && !s.c.Spare(t.Name) && !s.c.OfActivation(t.Name) &&
			!(s.c.Tied && t.Name == output) && !s.joined[t.Name] {
			list = append(list, t.Name)
		}
	}
	return list
}

// stored returns the type of a tensor in the folder, and the bytes that its elements take there.
func (s *hfSource) stored(t tensor.Tensor) (tensor.Type, int64) {
	bytes := int64(t.Rows() * t.RowBytes())
	stored, ok := s.Stored(t.Name)
	if !ok {
		return t.Type, bytes
	}
	elements, size := stored.Block()
	return stored, int64(t.Elements()) * int64(size) / int64(elements)
}

func (s *hfSource) config() (Config, error) { return s.c, nil }

func (s *hfSource) tensor(name string) (tensor.Tensor, bool, error) {
	a := s.c.layout()
	layer, rest := layerPart(name)
	stem, ending := splitName(rest)
	p, prefix := a.findTensor(stem, ending, func(p part) bool { return s.c.hasPart(p, max(layer, 0)) }), ""
	if p == nil {
		return tensor.Tensor{}, false, nil
	}
	if layer >= 0 {
		prefix = fmt.Sprintf("%s%d.", a.prefix, layer)
	}
	x := s.c.part(a, *p, max(layer, 0), "", prefix)
	t, names, err := x.FromFolder(s.File, ending)
	if names == nil {
		return t, false, err
	}
	for _, name := range names[1:] {
		s.joined[name] = true
	}
	if p.tiled && err == nil {
		if t, err = reshape.Reordered(t, x.ToGGUF); err == nil {
			t, err = ReorderColumns(t, x.ColsToGGUF)
		}
	}
	switch {
	case err != nil:
	case p.fused:
		t, err = s.splitHeads(t)
	case p.decay:
		t, err = reshape.Mapped(t, func(x float32) float32 { return float32(-math.Exp(float64(x))) })
	case a.shifted && p.in == none && !p.plain && ending == ".weight":
		t, err = reshape.Shifted(t, 1)
	}
	return t, err == nil, err
}

// splitHeads reorders GPT-NeoX's fused projection, which holds query, key and value of each head in
// turn, into all queries, all keys, all values.
func (s *hfSource) splitHeads(t tensor.Tensor) (tensor.Tensor, error) {
	h, d := s.c.Heads, s.c.HeadDim
	if len(t.Shape) == 0 || t.Shape[0] != 3*h*d {
		return t, fmt.Errorf("%s: tensor %q has shape %v: want %d rows, 3 for each dimension of %d heads", s.dir, t.Name, t.Shape, 3*h*d, h)
	}
	return reshape.Reordered(t, s.c.unfuse)
}

func (s *hfSource) tokenizer() (*tokenizer.Tokenizer, error) {
	if lower.TokenizerFile(s.dir) == "" {
		return nil, nil
	}
	return tokenizer.FromJSON(s.dir)
}
