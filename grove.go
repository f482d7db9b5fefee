package grove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/engine/pagestore"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tokenizer"
)

// Options say how to open a model.
type Options struct {
	Threads int // worker threads; 0: as many as the program may use (GOMAXPROCS)
	Context int // maximum tokens of prompt and output together; 0: the model's own limit

	// Draft is the path of a draft model, a GGUF file or a Hugging Face folder, for drafters that use
	// one. It is a small model with this model's tokenizer, and shares its workers. DraftGGUF is a
	// draft model as the contents of a GGUF file.
	Draft     string
	DraftGGUF []byte

	// Heads are the paths of drafters' heads made for this model, each a GGUF file or a Hugging Face
	// folder, for drafters that use one; each drafter takes the first of its kind. HeadGGUF are more
	// heads, as the contents of GGUF files.
	Heads    []string
	HeadGGUF [][]byte

	// OfferedHeads are heads for several models, as the contents of GGUF files. Without Heads and
	// HeadGGUF, the model takes those made for its weights, whatever file or type the weights are
	// stored in.
	OfferedHeads [][]byte

	// Adapt, if set, lets all drafters with trained heads learn from generated text; nil: only
	// those with the modifier +adapt learn.
	Adapt *AdaptOptions

	// Learned is a folder that keeps what drafters learn from generated text for the next time the
	// model is opened: the weights of +text, acceptance rates, and the heads of +adapt. Empty:
	// Adapt's Dir; if that is empty too, Close discards them.
	Learned string

	// KV is the type of cached keys and values: "f32"; "bf16", which takes half the memory; "q8_0",
	// which takes a quarter; or "auto", its default, which is bf16 unless weights are F32 or F16.
	KV string

	ChatTemplate string // a Jinja template for Chat that replaces the one in the model's files

	// Generations share one engine. Parallel is how many it runs at the same time, 0: 64; Queue how many more may
	// wait, 0: no limit; if one tenant fills the queue, others may still wait, until twice as many do. CacheMemory
	// bounds the memory of keys and values in bytes, 0: no limit. Prefixes that finished generations leave for later
	// prompts are dropped first; without a limit they take at most half of the machine's free memory, or 256 MiB if
	// that is more. If CacheMemory cannot hold one text of the whole context, the context is shorter.
	Parallel, Queue int
	CacheMemory     int64

	// CacheDir is a folder that also keeps these prefixes, except those of sessions, for the next time the model
	// is opened; empty: none are kept. CacheDirSize bounds it in bytes, 0: 16 GiB. Only one open model at a time
	// can use the folder. A different build of the program starts with an empty one.
	CacheDir     string
	CacheDirSize int64

	// Memory, if set, keeps generated text for drafters to draft from; nil: none is kept.
	Memory *MemoryOptions

	Progress func(done, total int64) // called while weights load, with bytes; may be nil

	more inside.OpenOptions
}

// maxThreads is far more than a pass can use.
const maxThreads = 1024

// readyMemory is the size of the early reservation for keys and values, in bytes: half of what prefixes always get.
const readyMemory = engine.DefaultPrefixMemory / 2

// Model is an open model. Any number of goroutines may generate with it at the same time: weights
// are shared, each generation has a cache and memory of its own, and their passes take turns on the
// model's workers. Close it after the last generation has ended.
type Model struct {
	m        *model.Model
	layout   func() (*chat.Layout, error) // made on first use
	drafting drafting
	engine   *engine.Engine
	store    *pagestore.Store // of Options.CacheDir; nil if there is none

	constraints constraints
	memories    *memories        // nil: texts are not kept
	embedding   chan *model.Pass // for embeddings, one at a time; closed with the model
}

// Open loads the model at path: a GGUF file (if it is split, its first part) or a Hugging Face folder.
func Open(path string, o Options) (*Model, error) {
	return open(o, registry.Head{Name: path}, func(o model.Options) (*model.Model, error) { return model.Open(path, o) })
}

// OpenGGUF loads a model from the contents of a GGUF file, such as one that a program embeds; data must not change
// while the model is open. Errors show name in place of a path.
func OpenGGUF(name string, data []byte, o Options) (*Model, error) {
	return open(o, registry.Head{Name: name, Data: data}, func(o model.Options) (*model.Model, error) {
		return model.OpenGGUF(name, data, o)
	})
}

// open opens a model that target loads from a file. Layers after the model's in the file are a
// head, which follows the heads that are asked for.
func open(o Options, file registry.Head, target func(model.Options) (*model.Model, error)) (*Model, error) {
	switch {
	case o.Threads < 0 || o.Threads > maxThreads:
		return nil, optionf("Threads", "%d: want 0 (one per processor) to %d", o.Threads, maxThreads)
	case o.Context < 0:
		return nil, optionf("Context", "%d: want 0 (the model's limit) or more", o.Context)
	case o.more.Pad < 0:
		return nil, optionf("Pad", "%d: want the parameters to reach, or 0 for no padding", o.more.Pad)
	case o.more.PadExperts < 0:
		return nil, optionf("PadExperts", "%d: want a number of experts, or 0 for none", o.more.PadExperts)
	case o.Adapt != nil && (o.Adapt.Threads < 0 || o.Adapt.Threads > maxThreads):
		return nil, optionf("Adapt", "Threads is %d: want 0 (one) to %d", o.Adapt.Threads, maxThreads)
	case o.Parallel < 0:
		return nil, optionf("Parallel", "%d: want 1 or more generations, or 0 for %d", o.Parallel, engine.DefaultParallel)
	case o.Queue < 0:
		return nil, optionf("Queue", "%d: want 1 or more generations, or 0 for no limit", o.Queue)
	case o.Memory != nil && o.Memory.Tokens < 0:
		return nil, optionf("Memory", "Tokens is %d: want 1 or more, or 0 for %d", o.Memory.Tokens, textstore.DefaultTokens)
	case o.CacheMemory < 0:
		return nil, optionf("CacheMemory", "%d bytes: want more than 0, or 0 for no limit", o.CacheMemory)
	case o.CacheDirSize < 0:
		return nil, optionf("CacheDirSize", "%d bytes: want more than 0, or 0 for %d", o.CacheDirSize,
			int64(defaultCacheDirSize))
	case o.Draft != "" && o.DraftGGUF != nil:
		return nil, optionf("Draft", "DraftGGUF is set too: set only one of them")
	}
	kv, err := nn.ParseKVType(o.KV)
	if err != nil {
		return nil, optionf("KV", "%v", err)
	}
	m, err := target(model.Options{Threads: o.Threads, Context: o.Context, KV: kv, Progress: o.Progress,
		Pad: o.more.Pad, PadType: o.more.PadType, PadExperts: o.more.PadExperts, PadUsed: o.more.PadUsed})
	if err != nil {
		return nil, err
	}
	e := engine.Options{Parallel: o.Parallel, Queue: o.Queue, CacheMemory: o.CacheMemory, Name: o.more.Name}
	if err := o.setStore(&e, file, m); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	g, err := newModel(m, e)
	if err != nil {
		return nil, errors.Join(err, e.Disk.Close(), m.Close())
	}
	g.drafting.adapt, g.drafting.auto = o.Adapt, o.more.Auto
	g.drafting.learnShare = o.more.LearnShare
	if o.Memory != nil {
		g.memories = &memories{o: *o.Memory, open: map[string]*memoryUse{}}
		store, err := g.openMemory("") // report an error now, not with every request
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.memories.open[""] = &memoryUse{Store: store}
	}
	if o.ChatTemplate != "" {
		layout, err := g.parseTemplate(o.ChatTemplate)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.layout = func() (*chat.Layout, error) { return layout, nil }
	}
	switch {
	case o.Draft != "":
		g.drafting.model, err = g.openDraft(o.Draft)
	case o.DraftGGUF != nil:
		g.drafting.model, err = g.openDraftGGUF(o.DraftGGUF)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the draft model: %w", err), g.Close())
	}
	if err := g.checkDraft(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if o.Heads == nil && o.HeadGGUF == nil {
		o.HeadGGUF, err = g.madeFor(o.OfferedHeads)
	}
	if err == nil {
		err = g.addHeads(o.Heads, o.HeadGGUF)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	// other models' layers have parts that heads do not have
	if m.Config.Ahead > 0 && (!m.Config.Hybrid() || model.Alike(m.Config.Arch)) {
		file.Inside = true
		g.drafting.heads = append(g.drafting.heads, file)
	}
	if err := g.drafting.describe(&o); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if err := g.openLearned(&o); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func newModel(m *model.Model, o engine.Options) (*Model, error) {
	o.Pages = []*nn.Pages{m.NewCache().Pages()}
	ready := min(readyMemory, cmp.Or(o.CacheMemory, readyMemory))
	o.Ready = min(m.Config.Context, int(ready)/max(o.Pages[0].RowBytes(), 1))
	o.Loop.Controller = speculate.NewController()
	e, err := engine.New(speculate.Model(m), o)
	if little := new(engine.LittleMemoryError); errors.As(err, &little) {
		return nil, optionf("CacheMemory", "%v", little)
	} else if err != nil {
		return nil, err
	}
	embedding := make(chan *model.Pass, 1)
	embedding <- m.NewPass()
	return &Model{m: m, engine: e, store: o.Disk, embedding: embedding, drafting: drafting{control: o.Loop.Controller},
		layout: sync.OnceValues(func() (*chat.Layout, error) {
			if m.Tokenizer == nil {
				return nil, errNoTokenizer
			}
			return chat.New(m.Tokenizer)
		})}, nil
}

// Close closes the model and its draft models. No generation may be running. A second call does nothing.
func (m *Model) Close() error {
	m.engine.Close()
	pass := <-m.embedding // wait for an embedding in progress to end
	if pass == nil {
		return nil
	}
	close(m.embedding)
	return errors.Join(m.store.Close(), m.memories.close(), m.drafting.close(), m.m.Close())
}

// Target describes the model to drafters, by its shape and tokenizer, and makes drafters for it.
func (m *Model) Target() draft.Target {
	t := m.target()
	return t.Public()
}

// target returns the model as grove's own drafters see it.
func (m *Model) target() registry.Target {
	return registry.Target{
		Vocab: m.m.Config.Vocab, Context: m.m.Context(), Model: m.m, Draft: m.drafting.model, Open: m.openDraft,
		Heads: m.drafting.heads, Shared: &m.drafting.shared, Auto: m.drafting.auto, Adapt: m.adapting,
	}
}

// insides is a Model, or a type that embeds one.
type insides interface {
	target() registry.Target
	check(prompt []int32, r *Request) error
	hides(r *Request) func(token int32) bool
	engineStats() engine.Stats
	adapterOf(drafter string) (*adapt.Adapter, error)
}

func (m *Model) engineStats() engine.Stats { return m.engine.Stats() }

func init() {
	inside.Target = func(m any) registry.Target { return m.(insides).target() }
	inside.Check = func(m any, prompt []int32, r any) error { return m.(insides).check(prompt, r.(*Request)) }
	inside.EngineStats = func(m any) engine.Stats { return m.(insides).engineStats() }
	inside.SetOpenOptions = func(o any, more inside.OpenOptions) { o.(*Options).more = more }
	inside.Hides = func(m any, r any) func(int32) bool { return m.(insides).hides(r.(*Request)) }
	inside.RequestOptionsOf = func(r any) *inside.RequestOptions { return &r.(*Request).more }
	inside.Stats = func(r any) *speculate.Stats { return &r.(*Result).all }
	inside.Adapter = func(m any, drafter string) (*adapt.Adapter, error) { return m.(insides).adapterOf(drafter) }
}

// Drain refuses new generations with ErrClosed, and waits until the running ones have ended or ctx ends. It returns
// ctx's error if some are still running. Embeddings remain available.
func (m *Model) Drain(ctx context.Context) error { return m.engine.Drain(ctx) }

// Context is the maximum number of tokens of prompt and output together.
func (m *Model) Context() int { return m.engine.Context() }

// Tokenizer returns the model's tokenizer, or nil if its file has none.
func (m *Model) Tokenizer() *tokenizer.Tokenizer { return m.m.Tokenizer }

// Tokenize returns the tokens of a prompt as Generate reads it: with a BOS token if the model expects
// one and the prompt does not begin with its name, and with names of special tokens read as those
// tokens.
func (m *Model) Tokenize(prompt string) ([]int32, error) {
	if err := validText("Prompt", prompt); err != nil {
		return nil, err
	}
	t := m.m.Tokenizer
	if t == nil {
		return nil, errNoTokenizer
	}
	tokens := t.Encode(prompt, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	if bos := t.BOS(); t.AddBOS() && len(tokens) > 1 && tokens[0] == bos && tokens[1] == bos {
		tokens = tokens[1:]
	}
	return tokens, nil
}
