package command

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/recode"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/hub"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tensor"
)

// Embedded replaces the path of a model that is in the program.
const Embedded = "embedded"

// ModelFlags name a model.
type ModelFlags struct {
	Model string `short:"m" env:"GROVE_MODEL" help:"GGUF file, Hugging Face folder, or ORG/REPO that grove pull fetched; default: grove's small model." placeholder:"FILE" hub:"" group:"Model"`

	OpenFlags
}

// OpenFlags say how to open it, and what drafts for it.
type OpenFlags struct {
	DraftModel string   `hub:"" env:"GROVE_DRAFT_MODEL" help:"Small model with the same tokenizer to draft with." placeholder:"FILE" group:"Model"`
	Head       []string `hub:"" env:"GROVE_HEADS" help:"Draft head made for the model; may be repeated." placeholder:"FILE" group:"Model"`
	Adapt      string   `env:"GROVE_ADAPT" help:"Let all draft heads learn, as with +adapt, and save them in DIR." placeholder:"DIR" group:"Model"`
	Learned    string   `env:"GROVE_LEARNED" help:"Keep in DIR what drafters learn while decoding." placeholder:"DIR" group:"Model"`
	Memory     string   `env:"GROVE_MEMORY" help:"Keep generated text in DIR, and draft from it later." placeholder:"DIR" group:"Model"`
	Context    int      `help:"Maximum tokens of prompt and output together; 0 means the model's limit." default:"0" placeholder:"N" group:"Model"`

	Name string `kong:"-"` // in the log

	KVFlag
	padFlags
}

// KVFlag says which type caches store.
type KVFlag struct {
	KV string `name:"kv" env:"GROVE_KV" help:"Type of the KV cache: f32, bf16, q8_0 or auto." enum:"auto,f32,bf16,q8_0," default:"auto" placeholder:"TYPE" group:"Model"`
}

func (f KVFlag) Parse() (nn.KVType, error) {
	t, err := nn.ParseKVType(f.KV)
	if err != nil {
		return t, Usagef("--kv: %v", err)
	}
	return t, nil
}

// padFlags make a small model cost as much as a large one.
type padFlags struct {
	Pad        string `help:"Pad the model to about N parameters, such as 500M: same text, more work." placeholder:"N" group:"Model"`
	PadType    string `help:"Type of the padding weights, such as bf16, q8_0 or q4_k." enum:"bf16,f16,q8_0,q6_k,q5_k,q4_k,q5_1,q5_0,q4_1,q4_0" default:"bf16" placeholder:"TYPE" group:"Model"`
	PadExperts string `help:"Turn each MLP into N identical experts, of which each token uses K." placeholder:"N,K" group:"Model"`
}

// Open loads the model, showing its progress.
func (f *ModelFlags) Open(p *Program) (*grove.Model, error) { return f.OpenWith(p, grove.Options{}) }

// OpenWith is Open with additional options.
func (f *ModelFlags) OpenWith(p *Program, o grove.Options) (*grove.Model, error) {
	return f.OpenAt(p, f.Model, o)
}

// OpenAt loads the model at a path, or the embedded one if the path is empty.
func (f *OpenFlags) OpenAt(p *Program, name string, o grove.Options) (*grove.Model, error) {
	if f.Context < 0 {
		return nil, Usagef("--context %d: want 0 (the model's limit) or more", f.Context)
	}
	o.Threads = p.Threads
	o.Context = f.Context
	o.Draft = f.DraftModel
	o.Heads = f.Head
	o.Learned = f.Learned
	if f.Adapt != "" {
		o.Adapt = &grove.AdaptOptions{Dir: f.Adapt}
	}
	if f.Memory != "" {
		o.Memory = &grove.MemoryOptions{Dir: f.Memory}
	}
	more := inside.OpenOptions{Name: f.Name}
	switch {
	case f.DraftModel != "" && len(f.Head) == 0:
		more.Auto = "best-first+text"
	case name == "" && (f.Pad == "" || f.Pad == "0") && len(f.Head) == 0 && f.Adapt == "":
		more.Auto = "lookup" // the small model's passes are so fast that a drafter's pass hardly pays
	}
	var err error
	if err = f.padding(&more); err != nil {
		return nil, err
	}
	inside.SetOpenOptions(&o, more)
	o.KV = f.KV
	if o.Progress == nil {
		bar := p.Progress("loading", true)
		defer bar.End()
		o.Progress = bar.Set
	}
	var m *grove.Model
	if name == "" {
		name = Embedded
		if f.DraftModel == "" {
			o.DraftGGUF = models.Draft()
		}
		if f.Head == nil {
			o.HeadGGUF = models.Heads()
		}
		m, err = grove.OpenGGUF(name, models.Target(), o)
	} else {
		o.OfferedHeads = models.PublishedHeads()
		m, err = grove.Open(name, o)
	}
	if err != nil {
		return nil, err
	}
	if limit := inside.Target(m).Model.Config.Context; f.Context > limit {
		fmt.Fprintf(p.Stderr, "%s: --context %d is more than the %d tokens that the model was made for: text beyond them gets worse\n",
			p.Name, f.Context, limit)
	}
	for _, head := range f.Head {
		made, err := heads.MadeFor(registry.Head{Name: head})
		if err == nil && made != "" && made != inside.Target(m).Model.WeightsID() {
			fmt.Fprintf(p.Stderr, "%s: the head %s was made for other weights than those of %s: it may draft badly\n", p.Name, head, name)
		}
	}
	p.Logf("%s: %s, %d layers, vocabulary %d, context %d, %s of weights, %d threads, kernels %s",
		name, inside.Target(m).Model.Config.Arch, inside.Target(m).Model.Config.Layers, inside.Target(m).Vocab, m.Context(),
		Size(int64(inside.Target(m).Model.WeightBytes())), inside.Target(m).Model.Threads(), cpu.Active())
	if t := m.Tokenizer(); t != nil {
		for _, note := range t.Notes() {
			p.Logf("%s", note)
		}
	}
	return m, nil
}

// padding reads the flags.
func (f *padFlags) padding(o *inside.OpenOptions) (err error) {
	if f.PadExperts != "" {
		experts, used, _ := strings.Cut(f.PadExperts, ",")
		o.PadExperts, _ = strconv.Atoi(experts)
		if o.PadUsed, err = strconv.Atoi(used); err != nil || o.PadExperts < 1 {
			return Usagef("--pad-experts %q: want the experts of a layer and those of a row, such as 64,4", f.PadExperts)
		}
	}
	if f.Pad == "" || f.Pad == "0" {
		return nil
	}
	if o.Pad, err = ParseCount(f.Pad); err != nil {
		return Usagef("--pad %q: %v", f.Pad, err)
	}
	if o.PadType, err = PadType(f.PadType); err != nil {
		return Usagef("--pad-type %q: %v", f.PadType, err)
	}
	return nil
}

func PadType(name string) (tensor.Type, error) {
	t, err := tensor.ParseType(name)
	if err != nil || recode.CheckWritable(t) != nil || t == tensor.F32 {
		return 0, fmt.Errorf("want bf16, f16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1 or q4_0")
	}
	return t, nil
}

// ParseCount reads a number of parameters: 1500000, 500M, 1.5B.
func ParseCount(text string) (int64, error) {
	number, unit := text, 1.0
	for suffix, u := range map[string]float64{"K": 1e3, "M": 1e6, "B": 1e9} {
		if rest, ok := strings.CutSuffix(strings.ToUpper(text), suffix); ok {
			number, unit = rest, u
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x*unit >= 1 && x*unit < math.MaxInt64/2) {
		return 0, fmt.Errorf("want a number of parameters, such as 500M or 1.5B")
	}
	return int64(x * unit), nil
}

// ModelName returns the name that the model gives itself, with its padding.
func ModelName(m *grove.Model, path string) string {
	c := inside.Target(m).Model.Config
	name := PlainText(cmp.Or(c.Name, hub.Shown(path), Embedded)) // a file's name can contain anything
	if c.Padded > 0 {
		name += fmt.Sprintf(", padded from %s to %s parameters", Count(c.Parameters()-c.Padded), Count(c.Parameters()))
		if c.Experts > 0 {
			name += fmt.Sprintf(", %d experts of which a row uses %d", c.Experts, c.Used)
		}
	}
	return name
}
