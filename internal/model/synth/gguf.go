package synth

import (
	"context"
	"io"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/tensor"
)

// Write writes the shape's model for a seed as a GGUF file, completely or not at all.
func Write(ctx context.Context, path string, s Shape, o Options) error {
	return writeWith(ctx, s, o, func(w *gguf.Writer) error { return w.WriteFile(path) })
}

// writeWith has a function write the GGUF file of the shape's model for a seed.
func writeWith(ctx context.Context, s Shape, o Options, write func(w *gguf.Writer) error) error {
	if err := s.check(o.Type); err != nil {
		return err
	}
	w := new(gguf.Writer)
	s.setMeta(w, o.Type)
	if err := s.setTokenizer(w); err != nil {
		return err
	}
	ts := s.plan()
	m := start(ctx, ts, o, true)
	defer m.stop()
	for i := range ts {
		t := &ts[i]
		w.Add(t.gguf, t.encoding(o.Type), t.shape(), func(out io.Writer) error { return m.write(t, out) })
	}
	return write(w)
}

func (s Shape) setMeta(w *gguf.Writer, typ tensor.Type) {
	c := s.Config()
	c.SetGGUF(w, s.Arch, s.Name, typ)
	w.Set("general.description", "random weights for measurements and tests")
}

func (s Shape) setTokenizer(w *gguf.Writer) error {
	v, err := buildVocab(s.Tokens, s.Vocab)
	if err != nil {
		return err
	}
	if s.Tokens == SPM {
		w.Set("tokenizer.ggml.model", "llama")
		w.Set("tokenizer.ggml.pre", "default")
	} else {
		w.Set("tokenizer.ggml.model", "gpt2")
		w.Set("tokenizer.ggml.pre", string(s.Tokens))
	}
	w.Set("tokenizer.ggml.tokens", v.pieces)
	w.Set("tokenizer.ggml.token_type", v.kinds)
	if s.Tokens == SPM {
		w.Set("tokenizer.ggml.scores", v.scores)
		w.Set("tokenizer.ggml.unknown_token_id", uint32(0))
		w.Set("tokenizer.ggml.add_space_prefix", true)
	} else {
		merges := make([]string, len(v.merges))
		for i, m := range v.merges {
			merges[i] = m[0] + " " + m[1]
		}
		w.Set("tokenizer.ggml.merges", merges)
	}
	for _, t := range []struct {
		key string
		id  int32
	}{{"bos", v.bos}, {"eos", v.eos}, {"eot", v.eot}} {
		if t.id >= 0 {
			w.Set("tokenizer.ggml."+t.key+"_token_id", uint32(t.id))
		}
	}
	w.Set("tokenizer.ggml.add_bos_token", v.addBOS)
	if v.template != "" {
		w.Set("tokenizer.chat_template", v.template)
	}
	return nil
}
