package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// WritePadded writes a padded copy of the GGUF file at from, using Pad, PadType and Progress of Options.
// Metadata and tokenizer are copied; PaddingKey marks it as padded. Other engines can run it too.
func WritePadded(ctx context.Context, from, to string, o Options) (Config, error) {
	f, err := gguf.Open(from)
	if err != nil {
		return Config{}, err
	}
	src, err := openGGUF(f, nil)
	if err != nil {
		return Config{}, named(from, err)
	}
	defer src.Close()
	if a, err := os.Stat(from); err == nil {
		if b, err := os.Stat(to); err == nil && os.SameFile(a, b) {
			return Config{}, fmt.Errorf("%s: reading and writing the same file: choose another name", to)
		}
	}
	bare, err := src.config()
	if err == nil {
		src, err = pad(src, o.Pad, o.PadType)
	}
	if err != nil {
		return Config{}, named(from, err)
	}
	c, err := src.config()
	if err != nil {
		return c, err
	}
	p := &padWriter{ctx: ctx, src: src, w: new(gguf.Writer), tell: o.Progress}
	ggufkeys.SetAll(p.w, f)
	prefix := ggufkeys.Of(f).String("general.architecture") + "."
	a, set := c.arch(), func(key string, v any) { p.w.Set(prefix+key, v) }
	set("block_count", uint32(c.Layers))
	if c.Ahead > 0 { // added layers take their places
		c.Ahead = 0
		set(aheadKey, uint32(0))
	}
	set("feed_forward_length", uint32(c.FFN))
	c.setFeatures(a, set)
	if a.hybrid {
		set("attention.head_count_kv", c.kvHeadsKey())
		a.writeKeys(&c, set)
	}
	if _, listed := f.Lookup(prefix + windowPattern); listed && c.Window > 0 {
		set(windowPattern, c.Windowed)
	}
	p.w.Set(PaddingKey, uint64(c.Padded))
	p.w.Set("general.description", fmt.Sprintf("padded by grove: %d of its %d parameters change nothing but what a pass costs",
		c.Padded, c.Parameters()))
	var parts []string // of a layer
	last := 0
	for _, t := range f.Tensors {
		layer, part := layerPart(t.Name)
		if layer >= bare.Layers {
			continue
		}
		if layer == 0 {
			parts = append(parts, part)
		}
		last = max(last, layer)
		err = errors.Join(err, p.add(t.Name))
	}
	for i := last + 1; i < c.Layers; i++ {
		for _, part := range parts {
			err = errors.Join(err, p.add(fmt.Sprintf("blk.%d.%s", i, part)))
		}
	}
	if err != nil {
		return c, named(from, err)
	}
	return c, p.w.WriteFile(to)
}

type padWriter struct {
	ctx         context.Context
	src         source
	w           *gguf.Writer
	done, total int64
	tell        func(done, total int64)
}

// add plans a tensor, which is made once to determine its type and shape and again when it is
// written: the file may be far larger than memory.
func (p *padWriter) add(name string) error {
	t, ok, err := p.src.tensor(name)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("tensor %s is missing", name)
	}
	p.total += int64(t.Rows() * t.RowBytes())
	p.w.Add(name, t.Type, t.Shape, func(out io.Writer) error {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		t, _, err := p.src.tensor(name)
		if err == nil {
			t, err = t.ReadAll()
		}
		if err != nil {
			return err
		}
		if _, err := out.Write(t.Data); err != nil {
			return err
		}
		p.done += int64(len(t.Data))
		if p.tell != nil {
			p.tell(p.done, p.total)
		}
		return nil
	})
	return nil
}
