// Heads in files: GGUF of architecture falcon-head, which is grove's own, and the Hugging Face
// folders of Falcon's authors (Bestpay-inc/Falcon), whose weights are in pytorch_model.bin.

package falcon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// arch is the architecture of GGUF files. The language models called Falcon have a different one.
const arch = "falcon-head"

var kind = headfile.Kind{
	Name: "Falcon head", Drafters: []string{"falcon"}, Archs: []string{arch}, Whole: []string{arch},
	New: func() headfile.Shape { return new(Config) }, Embedding: true,
	Published: published,
	Examples: []string{
		"falcon:k=10,depth=7,n=60", "falcon:tree=best-first,width=6,branch=4,depth=10", "falcon:tree=static",
		"falcon:tree=linear,k=6", "falcon:tree=fixed,d=4,b=3",
	},
}

func init() { headfile.Register(&kind) }

// published returns the shapes of published heads; see headfile.Kind.Published.
func published(t *model.Config) []headfile.Published {
	c := Config{Base: headfile.Base{Config: headfile.PublishedLayers(t, "llama", 1)}, Block: 2}
	return []headfile.Published{{Drafter: "falcon", About: "an LSTM of 2 layers and a layer, 2 tokens a pass", Shape: &c}}
}

// Kind returns the kind of Falcon heads.
func (*Config) Kind() *headfile.Kind { return &kind }

// Open loads a head for a target, whose embedding, norm and output matrix it uses.
var Open = headfile.Opener(&kind, NewNetwork)

// FileArch returns the architecture that a GGUF file names.
func (*Config) FileArch() string { return arch }

// Keys visits the keys of a GGUF file.
func (c *Config) Keys(k *headfile.Keys) {
	k.Taps(&c.Base)
	k.Int(".block_size", &c.Block)
	k.Bool(".recurrent", &c.Recurrent, false)
}

// folderConfig is what config.json says of a head beyond its layers. The last two fields are not in
// the authors' files.
type folderConfig struct {
	Block        int   `json:"k_mask"`
	Recurrent    *bool `json:"lstm_recurrent"`
	TargetLayers int   `json:"num_target_layers"`
}

// ReadFolder reads the shape from config.json of an open folder.
func (c *Config) ReadFolder(x *headfile.File) (layout string, err error) {
	if !x.Has("lstm.weight_ih_l0") {
		return "", kind.Refuse("the folder has no tensor lstm.weight_ih_l0 as such heads have")
	}
	var f folderConfig
	base, err := x.FolderLayers("layers.0.self_attn.q_norm.weight", &f)
	if err != nil {
		return "", err
	}
	if f.Block == 0 {
		return "", fmt.Errorf("field \"k_mask\" is missing: want the number of tokens that a pass predicts")
	}
	*c = Config{Base: headfile.Base{Config: base, TargetLayers: f.TargetLayers}, Block: f.Block}
	if f.Recurrent != nil {
		c.Recurrent = *f.Recurrent
		return "", nil
	}
	for i := range (&Network{}).LSTM {
		if c.Recurrent, err = trained(x, fmt.Sprintf("lstm.weight_hh_l%d", i)); c.Recurrent || err != nil {
			return "", err
		}
	}
	return "", nil
}

// trained reports whether a matrix has been trained, and is not just zeros or PyTorch's initial values.
// Those are uniform around zero, so their largest square is three times the mean of the squares. The
// authors' training has no gradient for the state's matrices: its LSTM recurs over a batch of one.
func trained(x *headfile.File, name string) (bool, error) {
	t, ok := x.Tensor(name)
	if !ok || !t.Type.Decodes() || t.Cols() == 0 {
		return false, nil
	}
	const enough = 1 << 18 // elements
	rows := min(t.Rows(), max(1, enough/t.Cols()))
	v := make([]float32, rows*t.Cols())
	if err := t.DequantizeRows(v, 0, rows); err != nil {
		return false, err
	}
	largest, sum := 0.0, 0.0
	for _, w := range v {
		square := float64(w) * float64(w)
		largest, sum = max(largest, square), sum+square
	}
	return largest > 4*sum/float64(len(v)), nil
}

// folderNames replaces parts of GGUF names by those of PyTorch's names.
var folderNames = strings.NewReplacer(
	".input.weight", ".weight_ih", ".input.bias", ".bias_ih", ".state.weight", ".weight_hh", ".state.bias", ".bias_hh")

// Place returns where a folder keeps a tensor.
func (*Config) Place(name, _ string) headfile.Place {
	if rest, ok := strings.CutPrefix(name, "lstm."); ok {
		layer, part, _ := strings.Cut(rest, ".")
		return headfile.Place{Name: "lstm" + folderNames.Replace("."+part) + "_l" + layer}
	}
	hf, _ := model.HFName(model.Head, name)
	return headfile.Place{Name: hf}
}

// Folders reports which folders can be written: in the authors' code, attention heads together are
// as wide as the layer.
func (c *Config) Folders() (authors, speculators bool) {
	return c.Arch == "llama" && c.Heads*c.HeadDim == c.Hidden, false
}

// FolderFields returns the fields of config.json.
func (c *Config) FolderFields(
	m map[string]any, _ tensor.Type, weights []tensor.Tensor, _ *model.Config,
) (map[string]any, string, error) {
	m["architectures"] = []string{"Falcon"}
	m["k_mask"], m["lstm_recurrent"] = c.Block, c.Recurrent
	if slices.ContainsFunc(weights, func(w tensor.Tensor) bool { return w.Name == "blk.0.attn_q.bias" }) {
		m["qkv_bias"] = true
	}
	return m, "", nil
}

// Complete adds the tensors that the authors' code needs although they change nothing: zeros for
// the previous state.
func (c *Config) Complete(weights []tensor.Tensor) ([]tensor.Tensor, error) {
	for i := range (&Network{}).LSTM {
		for _, shape := range [][]int{{4 * c.Hidden, c.Hidden}, {4 * c.Hidden}} {
			name := fmt.Sprintf("lstm.%d.state.%s", i, []string{"bias", "weight"}[len(shape)-1])
			if slices.ContainsFunc(weights, func(w tensor.Tensor) bool { return w.Name == name }) {
				continue
			}
			n := 1
			for _, d := range shape {
				n *= d
			}
			t, err := tensor.FromFloat32s(name, tensor.F32, shape, make([]float32, n))
			if err != nil {
				return nil, err
			}
			weights = append(weights[:len(weights):len(weights)], t)
		}
	}
	return weights, nil
}
