package train

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/atomicfile"
	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/train/bpe"
)

// WriteGGUF writes the network with the vocabulary of an open file as GGUF, under llama.cpp's names. Matrices are
// encoded as t (F32, F16, BF16 or Q8_0), vectors as F32.
func (n *Network) WriteGGUF(path, name string, vocabulary *gguf.File, t tensor.Type) error {
	s := &n.Shape
	w := gguf.NewWriter()
	w.Set("general.architecture", "qwen3")
	w.Set("general.name", name)
	for key, v := range map[string]int{
		"block_count": s.Layers, "context_length": s.Context, "embedding_length": s.Hidden, "feed_forward_length": s.FFN,
		"attention.head_count": s.Heads, "attention.head_count_kv": s.KVHeads, "attention.key_length": s.HeadDim,
		"attention.value_length": s.HeadDim, "rope.dimension_count": s.HeadDim, "vocab_size": s.Vocab,
	} {
		w.Set("qwen3."+key, uint32(v))
	}
	w.Set("qwen3.attention.layer_norm_rms_epsilon", s.NormEps)
	w.Set("qwen3.rope.freq_base", float32(s.RopeBase))
	if err := bpe.CopyGGUF(w, vocabulary); err != nil {
		return err
	}
	for _, p := range n.Params.All() {
		kind := t
		if p.Vector {
			kind = tensor.F32
		}
		data, err := tensor.FromFloat32s(p.Name, kind, p.Shape(), p.Data)
		if err != nil {
			return err
		}
		w.AddTensor(data)
	}
	return w.WriteFile(path)
}

// WriteFolder writes the network as a Hugging Face folder: config.json and model.safetensors in f32.
func (n *Network) WriteFolder(dir string, eos int32) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	s := &n.Shape
	config := map[string]any{
		"architectures": []string{"Qwen3ForCausalLM"}, "model_type": "qwen3", "hidden_size": s.Hidden, "num_hidden_layers": s.Layers,
		"num_attention_heads": s.Heads, "num_key_value_heads": s.KVHeads, "head_dim": s.HeadDim, "intermediate_size": s.FFN,
		"vocab_size": s.Vocab, "max_position_embeddings": s.Context, "rms_norm_eps": s.NormEps, "rope_theta": s.RopeBase,
		"tie_word_embeddings": true, "attention_bias": false, "hidden_act": "silu", "eos_token_id": eos, "torch_dtype": "float32",
	}
	w := safetensors.NewWriter()
	w.SetMetadata("format", "pt")
	for _, p := range n.Params.All() {
		w.Add(hfName(p.Name), tensor.F32, p.Shape(), func(out io.Writer) error { return writeFloats(out, p.Data) })
	}
	if err := w.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
		return err
	}
	return atomicfile.WriteJSON(filepath.Join(dir, "config.json"), config)
}

// Load copies the tensors of a Hugging Face folder, or of a checkpoint, into the network.
func (n *Network) Load(path string) error {
	f, named, err := openWeights(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range n.Params.All() {
		w, ok := f.Tensor(named(p.Name))
		if !ok {
			return fmt.Errorf("%s: no tensor %s: want a model of this shape", path, named(p.Name))
		}
		if w.Elements() != len(p.Data) || w.Cols() != p.Cols {
			return fmt.Errorf("%s: tensor %s has shape %v, this model's has %v", path, w.Name, w.Shape, p.Shape())
		}
		v, err := w.Float32s()
		if err != nil {
			return err
		}
		copy(p.Data, v)
	}
	n.Pack()
	return nil
}

// openWeights opens a folder or a checkpoint; named says what it calls a parameter.
func openWeights(path string) (f *safetensors.File, named func(string) string, err error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		f, err := safetensors.OpenFolder(path)
		return f, hfName, err
	}
	f, err = safetensors.Open(path)
	return f, func(name string) string { return "w." + name }, err
}
