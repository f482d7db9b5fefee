package synth

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/tensor"
)

// WriteHF writes the shape's model for a seed as a Hugging Face folder: config.json,
// model.safetensors, tokenizer.json and tokenizer_config.json. In F32 it computes the same function
// as Write's file for the same seed. The type is F32, F16 or BF16, and applies to vectors too.
func WriteHF(ctx context.Context, dir string, s Shape, o Options) error {
	if n, _ := o.Type.Block(); n > 1 {
		return fmt.Errorf("synth: %v has no place in a safetensors file: use F32, F16 or BF16", o.Type)
	}
	if err := s.check(o.Type); err != nil {
		return err
	}
	v, err := buildVocab(s.Tokens, s.Vocab)
	if err != nil {
		return err
	}
	config, err := s.config(v, o.Type)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := atomicfile.WriteJSON(filepath.Join(dir, "config.json"), config); err != nil {
		return err
	}
	if err := v.writeFiles(dir, s.Tokens); err != nil {
		return err
	}

	var ts []planned
	for _, t := range folderPlan(s.plan()) {
		if t.hf != "" {
			t.uniform = true
			ts = append(ts, t)
		}
	}
	slices.SortFunc(ts, func(a, b planned) int { return strings.Compare(a.hf, b.hf) }) // the writer asks in this order
	m := start(ctx, ts, o, false)
	defer m.stop()
	w := safetensors.NewWriter()
	w.SetMetadata("format", "pt")
	for i := range ts {
		t := &ts[i]
		w.Add(t.hf, o.Type, t.shape(), func(out io.Writer) error { return m.write(t, out) })
	}
	c := s.Config()
	numbers, err := c.Activations()
	if err != nil {
		return err
	}
	for _, t := range numbers {
		w.AddTensor(t)
	}
	return w.WriteFile(filepath.Join(dir, "model.safetensors"))
}

type object = map[string]any

// config returns config.json, in transformers' terms.
func (s Shape) config(v *vocab, typ tensor.Type) (object, error) {
	m := s.Config()
	c, err := m.Fields(typ)
	if err != nil {
		return nil, err
	}
	if s.Biases {
		c["attention_bias"] = true
		if _, ok := c["lm_head_bias"]; ok {
			c["lm_head_bias"] = true
		}
	}
	if v.bos >= 0 {
		c["bos_token_id"] = v.bos
	}
	c["eos_token_id"] = v.eos
	return c, nil
}
