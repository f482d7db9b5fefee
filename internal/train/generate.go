package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tokenizer"
	"github.com/grovellm/grove/tree"
)

// Generated is text that a target generates to teach a drafter: a number of files with a number of
// texts, each a beginning from the training text and the target's continuation, at temperature 1 or 0.
type Generated struct {
	Files, Texts int
	Prompt       int     // tokens of a beginning
	Length       int     // of a text, including the beginning
	Weight       float64 // share of the rows, relative to those of the training text
	Greedy       float64 `json:",omitempty"` // share of the texts at temperature 0
}

// generatedAtOnce is the number of texts that grow together.
const generatedAtOnce = 64

// set returns the text as a set of rows for a language model, weighted against the training text.
func (g Generated) set(ctx context.Context, j *Job, path, dir string, train []*data.Set) (*data.Set, error) {
	m, err := model.Open(path, model.Options{Threads: j.Threads})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	tokens, err := g.tokens(ctx, j, m, dir, FingerprintModel(m), train)
	if err != nil {
		return nil, err
	}
	var docs []data.Document
	for file := range g.Files {
		n := g.Texts * g.Length
		docs = append(docs, documents(fmt.Sprintf("generated file %d", file), tokens[file*n:(file+1)*n],
			m.Tokenizer)...)
	}
	set, err := data.FromDocuments(ctx, "generated", docs, m.Tokenizer, data.LoadOptions{Threads: j.Threads})
	if err != nil {
		return nil, err
	}
	set.Weight = g.Weight
	return set, nil
}

func (g Generated) path(dir string, file int) string {
	return filepath.Join(dir, fmt.Sprintf("%03d.tokens", file))
}

// folder returns the folder of the texts that a model with this fingerprint makes from beginnings
// of a text: below dir, named by a fingerprint of them all.
func (g Generated) folder(dir, source string, prompts []*data.Set) (string, *data.Mix, error) {
	mix, err := g.beginnings(prompts)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(dir, Fingerprint([]any{g.Texts, g.Prompt, g.Length, g.Greedy}, source, mix.Fingerprint())),
		mix, nil
}

// tokens returns the texts one after another, each of Length tokens, generating the files that are
// not yet in their folder.
func (g Generated) tokens(ctx context.Context, j *Job, m *model.Model, dir, source string,
	prompts []*data.Set) ([]int32, error) {
	dir, mix, err := g.folder(dir, source, prompts)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var all []int32
	for file := range g.Files {
		name := g.path(dir, file)
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			if b, err = g.file(ctx, j, m, mix, file); err == nil {
				err = atomicfile.Write(name, func(w io.Writer) error {
					_, err := w.Write(b)
					return err
				})
			}
		}
		if err == nil && len(b) != 4*g.Texts*g.Length {
			err = fmt.Errorf("%s: %d bytes, want %d: delete the file, it was made by another recipe", name, len(b),
				4*g.Texts*g.Length)
		}
		if err != nil {
			return nil, err
		}
		for ; len(b) > 0; b = b[4:] {
			id := int32(binary.LittleEndian.Uint32(b))
			if id < 0 || int(id) >= m.Config.Vocab {
				return nil, fmt.Errorf("%s: token %d is not in the vocabulary of %d: delete the file", name, id,
					m.Config.Vocab)
			}
			all = append(all, id)
		}
	}
	return all, nil
}

// missing returns how many tokens the model must still generate, for files that the folder lacks.
func (g Generated) missing(dir, source string, prompts []*data.Set) (tokens int, err error) {
	if g.Files == 0 {
		return 0, nil
	}
	dir, _, err = g.folder(dir, source, prompts)
	for file := range g.Files {
		if _, err := os.Stat(g.path(dir, file)); err != nil {
			tokens += g.Texts * (g.Length - g.Prompt)
		}
	}
	return tokens, err
}

// generationTime returns the least time a model takes to generate the given number of tokens, based
// on a pass with as many rows as texts grow together, for texts that have just begun.
func generationTime(ctx context.Context, m *model.Model, tokens int) (time.Duration, error) {
	b := &batch{pass: m.NewPass()}
	for range generatedAtOnce {
		s, err := sample.New(sample.Params{}, m.Config.Vocab)
		if err != nil {
			return 0, err
		}
		b.texts = append(b.texts, &text{tokens: []int32{0}, sampler: s, cache: m.NewCache()})
	}
	defer func() {
		for _, t := range b.texts {
			t.cache.Free()
		}
	}()
	if err := b.run(ctx, 2); err != nil { // the first pass makes room
		return 0, err
	}
	const passes = 4
	began := time.Now()
	err := b.run(ctx, 2+passes)
	return time.Since(began) / passes * time.Duration(tokens/generatedAtOnce+1), err
}

// beginnings deals the beginning of each text by its number.
func (g Generated) beginnings(from []*data.Set) (*data.Mix, error) {
	return data.NewMix(from, g.Prompt, 3)
}

// temperature of a text.
func (g Generated) temperature(number int) float32 {
	if math.Floor(float64(number+1)*g.Greedy) > math.Floor(float64(number)*g.Greedy) {
		return 0
	}
	return 1
}

// file generates one file: the tokens of its texts, four bytes each.
func (g Generated) file(ctx context.Context, j *Job, m *model.Model, mix *data.Mix, file int) ([]byte, error) {
	var out []byte
	began, noted := time.Now(), time.Now()
	for first := 0; first < g.Texts; first += generatedAtOnce {
		b := &batch{pass: m.NewPass()}
		for i := range min(generatedAtOnce, g.Texts-first) {
			number := file*g.Texts + first + i
			prompt := make([]int32, g.Prompt+1)
			mix.Row(uint64(number), prompt)
			s, err := sample.New(sample.Params{Temperature: g.temperature(number), Seed: uint64(number)},
				m.Config.Vocab)
			if err != nil {
				return nil, err
			}
			b.texts = append(b.texts, &text{tokens: prompt[:g.Prompt], sampler: s, cache: m.NewCache()})
		}
		if err := b.run(ctx, g.Length); err != nil {
			return nil, err
		}
		for _, t := range b.texts {
			for _, id := range t.tokens {
				out = binary.LittleEndian.AppendUint32(out, uint32(id))
			}
			t.cache.Free()
		}
		done := min(first+generatedAtOnce, g.Texts)
		if done < g.Texts && time.Since(noted) < 10*time.Second {
			continue
		}
		noted = time.Now()
		rate := float64(done*(g.Length-g.Prompt)) / time.Since(began).Seconds()
		left := float64(((g.Files-file)*g.Texts-done)*(g.Length-g.Prompt)) / rate
		j.Notef("the target generates text: %d of %d, %.0f tokens/s, %v left", file*g.Texts+done, g.Files*g.Texts, rate,
			time.Duration(left*float64(time.Second)).Round(time.Second))
	}
	return out, nil
}

// documents cuts tokens at the ends of texts, and into text and control tokens.
func documents(name string, tokens []int32, tok *tokenizer.Tokenizer) []data.Document {
	var docs []data.Document
	var plain []int32
	doc := data.Document{Name: name}
	text := func() {
		if s := strings.ToValidUTF8(tok.Decode(plain, tokenizer.DecodeOptions{}), ""); s != "" {
			doc.Parts = append(doc.Parts, data.Part{Text: s})
		}
		plain = plain[:0]
	}
	end := func() {
		text()
		if len(doc.Parts) > 0 {
			docs = append(docs, doc)
		}
		doc = data.Document{Name: name}
	}
	for _, id := range tokens {
		switch {
		case id == tok.EOS():
			end()
		case tok.IsSpecial(id):
			text()
			doc.Parts = append(doc.Parts, data.Part{Text: tok.Text(id), Control: true})
		default:
			plain = append(plain, id)
		}
	}
	end()
	return docs
}

// batch is texts that grow together, one token of each in a pass.
type batch struct {
	pass  *model.Pass
	texts []*text
	rows  []model.Rows
}

type text struct {
	tokens  []int32
	sampler *sample.Sampler
	cache   *nn.Cache
	tree    tree.Tree
}

func (b *batch) run(ctx context.Context, length int) error {
	for len(b.texts[0].tokens) < length {
		b.rows = b.rows[:0]
		for _, t := range b.texts {
			t.tree.ResetChain(t.tokens[t.cache.Len():])
			last := int32(t.tree.Len() - 1)
			b.rows = append(b.rows, model.Rows{Cache: t.cache, Tree: &t.tree, Logits: []int32{last}})
		}
		if err := b.pass.Run(ctx, b.rows, nil); err != nil {
			return err
		}
		var wg sync.WaitGroup
		for i, t := range b.texts {
			wg.Go(func() {
				t.tokens = append(t.tokens, t.sampler.Sample(b.pass.Logits(i, 0), len(t.tokens), nil))
				t.cache.CommitAll()
			})
		}
		wg.Wait()
	}
	return nil
}
