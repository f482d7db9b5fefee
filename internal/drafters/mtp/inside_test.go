package mtp_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// rewrite copies a folder with the tensors that keep accepts, and one more named more if it is not empty.
func rewrite(t *testing.T, from string, keep func(name string) bool, more string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "folder")
	f := Must(safetensors.OpenFolder(from))(t)
	defer f.Close()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	w := safetensors.NewWriter()
	for i, info := range f.Tensors {
		x := Must(Must(f.Load(info.Name))(t).ReadAll())(t)
		if keep(info.Name) {
			w.AddTensor(x)
		}
		if i == 0 && more != "" {
			x.Name = more
			w.AddTensor(x)
		}
	}
	if err := w.WriteFile(filepath.Join(to, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	return to
}

// A folder without the layer that config.json declares, as transformers saves it, is a model
// without one. A layer that lacks a tensor, or has one that grove does not compute, is refused by
// the tensor's name, and the model still runs.
func TestPartsOfLayers(t *testing.T) {
	const layer = "model.layers.2."
	from := filepath.Join("testdata", "tiny-glm4moe-mtp")
	for _, x := range []struct {
		lacks, more string
		ahead       int
		err         string
	}{
		{"", "", 1, ""},
		{layer, "", 0, "no layer after the model's"},
		{layer + "enorm.weight", "", 1, "tensor " + layer + "enorm.weight is missing"},
		{layer + "self_attn.k_proj.weight", "", 1, "tensor " + layer + "self_attn.k_proj.weight is missing"},
		{layer + "mlp.experts.3.up_proj.weight", "", 1, "tensor " + layer + "mlp.experts.3.up_proj.weight is missing"},
		{"", layer + "self_attn.gate.weight", 1, layer + "self_attn.gate.weight"},
	} {
		keep := func(name string) bool { return x.lacks == "" || !strings.HasPrefix(name, x.lacks) }
		path := rewrite(t, from, keep, x.more)
		m := Must(model.Open(path, model.Options{Threads: 1}))(t)
		defer m.Close()
		if m.Config.Layers != 2 || m.Config.Ahead != x.ahead {
			t.Errorf("without %q: %d layers and %d behind them, want 2 and %d", x.lacks, m.Config.Layers, m.Config.Ahead, x.ahead)
		}
		_, err := mtp.Open(registry.Head{Name: path, Inside: true}, As(m))
		if x.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("without %q, with %q: %v", x.lacks, x.more, err)
		}
	}
}

// A GGUF file of only the layer drafts what the layer drafts in its model's file, and cannot become
// a folder, which no program reads.
func TestLayerOfModelsKindAlone(t *testing.T) {
	for _, name := range []string{"tiny-glm4lite-mtp", "tiny-qwen35-mtp"} {
		both, alone := filepath.Join("testdata", name+".gguf"), filepath.Join(t.TempDir(), "alone.gguf")
		inGGUF(t, both, alone, 2, nil, func(name string) bool {
			return strings.HasPrefix(name, "blk.2.") || name == "token_embd.weight"
		})
		m := Must(model.Open(both, model.Options{Threads: 1}))(t)
		defer m.Close()
		want := drafted(t, Must(mtp.Open(registry.Head{Name: both, Inside: true}, As(m)))(t), m)
		n := Must(mtp.Open(registry.Head{Name: alone}, As(m)))(t)
		if got := drafted(t, n, m); !slices.Equal(got, want) || !heads.Is(registry.Head{Name: alone}) {
			t.Errorf("%s: the layer alone drafts %v, want %v", name, got, want)
		}
		f := Must(headfile.Read(registry.Head{Name: alone}, n.As(n.Config).Kind()))(t)
		defer f.Close()
		if err := headfile.WriteFolder(filepath.Join(t.TempDir(), "folder"), f.Shape, f.Weights, nil); err == nil ||
			!strings.Contains(err.Error(), "convert the model's file") {
			t.Errorf("%s: a folder of the layer: %v", name, err)
		}
	}
}
