package model

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// Options defines how to open a model.
type Options struct {
	Threads int // workers; 0: as many as the program may use (GOMAXPROCS)
	Context int // most tokens in a sequence; 0: as many as the model was made for

	// Workers is an open model whose workers this one will use instead of its own, such as the target
	// of a draft model: their passes take turns. It must outlive this model. Threads is then ignored.
	// Texts cannot be longer than in that model, so longrope's factors are those for its context.
	Workers *Model

	// Pad, if it is not 0, pads the model to about that many parameters: its logits stay the same
	// to the bit, and its passes cost as much as those of a model of that size. PadType is the type
	// of the added layers: BF16, F16, Q8_0 or a K type; its zero value means BF16.
	Pad     int64
	PadType tensor.Type

	// PadExperts, if it is not 0, is the number of experts that each layer's MLP is turned into.
	// They are copies of it, of which a row uses PadUsed: logits stay the same to rounding. The
	// model's architecture must be qwen3. WritePadded ignores both.
	PadExperts, PadUsed int

	// KV is the type in which caches store keys and values; its zero value, nn.KVAuto, depends on
	// the weights: bf16, or f32 if they are F32 or F16.
	KV nn.KVType

	Progress func(done, total int64) // called as weights load, in bytes; may be nil
}

// Open loads the model at path: a GGUF file or a Hugging Face folder.
func Open(path string, o Options) (*Model, error) {
	src, err := openSource(path)
	return finish(path, src, err, o)
}

// OpenGGUF loads a model from the contents of a GGUF file, such as one embedded in a program.
// Errors use name as its path.
func OpenGGUF(name string, data []byte, o Options) (*Model, error) {
	src, err := openGGUF(gguf.Parse(name, data))
	return finish(name, src, err, o)
}

// finish loads a model from a source, unless opening the source failed with err.
func finish(name string, src source, err error, o Options) (*Model, error) {
	if err != nil {
		return nil, named(name, err)
	}
	m, err := load(src, o)
	if err == nil {
		if err = src.CheckInPlace(); err != nil {
			m.Close()
		}
	}
	if err != nil {
		return nil, errors.Join(named(name, err), src.Close())
	}
	return m, src.Close()
}

// named prefixes an error with the path, unless it already mentions it.
func named(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func openSource(path string) (source, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return openHF(path)
	}
	return openGGUF(gguf.Open(path))
}

func load(src source, o Options) (*Model, error) {
	var err error
	if o.PadExperts != 0 {
		if src, err = copyExperts(src, o.PadExperts, o.PadUsed); err != nil {
			return nil, err
		}
	}
	if o.Pad != 0 {
		if src, err = pad(src, o.Pad, o.PadType); err != nil {
			return nil, err
		}
	}
	c, err := src.config()
	if err != nil {
		return nil, err
	}
	if o.Context < 0 || o.Threads < 0 {
		return nil, fmt.Errorf("options: context %d, threads %d: want no negative numbers", o.Context, o.Threads)
	}
	o.Context = cmp.Or(o.Context, c.Context)
	if c.arch().has("position_embd") && o.Context > c.Context {
		return nil, fmt.Errorf("options: context %d: the model has %d positions", o.Context, c.Context)
	}
	longest := o.Context
	if o.Workers != nil {
		longest = min(longest, o.Workers.limit)
	}
	c.Rope.setContext(longest)
	l := &Loader{src: src, arch: c.Arch, progress: o.Progress}
	network, err := NewNetwork(c, l)
	if err == nil {
		err = l.refuseUnused(src.names())
	}
	if err != nil {
		return nil, err
	}
	t, err := src.tokenizer()
	if err != nil {
		return nil, err
	}
	if t != nil && t.VocabSize() > c.Vocab {
		return nil, fmt.Errorf("the tokenizer has %d tokens, but the embedding only %d rows: they belong to different models", t.VocabSize(), c.Vocab)
	}
	m := &Model{Network: *network, Tokenizer: t, limit: o.Context}
	c.layOutPages(&m.pages, network.Blocks, o.KV)
	if o.Workers != nil {
		m.pool, m.guest = o.Workers.pool, true
	} else {
		m.pool = par.New(o.Threads)
	}
	if err := l.Pack(m.pool); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}
