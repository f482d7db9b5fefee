package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/train/data"
)

// HeadText is the part of a head's recipe that defines its training text. All kinds of heads learn
// from the same texts, which the target generates once.
type HeadText struct {
	// Text is "generated", the target's continuations of beginnings of the training text (from
	// which a head learns), or "corpus", the training text itself.
	Text string
	Only string `json:",omitempty"` // a source of the training text: only texts from it, or that begin with it

	Short     Generated
	Long      Generated // of twice the length; every LongEvery-th step takes half as many of these. 0 files: none
	LongEvery int

	Rows      int     // texts in a step
	MicroRows int     // texts whose activations exist at a time; divides Rows, and Rows/2 if there are long ones
	Repeats   float64 `json:"Circles"` // share of the places used where a text only repeats itself

	Held Generated // held-out text of each validation source, for interim measures
}

// DefaultHeadText returns the text of the shipped heads.
func DefaultHeadText() HeadText {
	return HeadText{
		Text:  "generated",
		Short: Generated{Files: 28, Texts: 512, Prompt: 192, Length: 512, Greedy: 0.5},
		Long:  Generated{Files: 3, Texts: 512, Prompt: 704, Length: 1024, Greedy: 0.5}, LongEvery: 8,
		Rows: 4, MicroRows: 2, Repeats: 0.5,
		Held: Generated{Files: 1, Texts: 64, Prompt: 192, Length: 512, Greedy: 1},
	}
}

// mostRows is more texts than the batches of published recipes have.
const mostRows = 4096

func (t *HeadText) check() error {
	parts := t.MicroRows // the texts of a step, or half of them if they are long, are computed in parts
	if t.long() {
		parts *= 2
	}
	switch {
	case t.MicroRows < 1:
		return fmt.Errorf("texts in parts of %d: want a positive number", t.MicroRows)
	case t.Rows < 1 || t.Rows > mostRows || t.Rows%parts != 0:
		return fmt.Errorf("--rows %d: want a multiple of %d, up to %d", t.Rows, parts, mostRows)
	case t.long() && (t.LongEvery < 2 || t.Long.Length != 2*t.Short.Length):
		return fmt.Errorf("texts of %d tokens in every %d-th step: want texts of twice the length of the others, in steps in between",
			t.Long.Length, t.LongEvery)
	case !slices.Contains([]string{"generated", "corpus"}, t.Text):
		return fmt.Errorf("text %q: want generated or corpus", t.Text)
	case !(t.Repeats >= 0 && t.Repeats <= 1):
		return fmt.Errorf("a share %g of repeated positions: want 0 to 1", t.Repeats)
	case t.Short.Files < 1 || t.Short.Texts < 1:
		return fmt.Errorf("%d files of %d texts: want one or more", t.Short.Files, t.Short.Texts)
	}
	for _, g := range []Generated{t.Short, t.Long} {
		switch {
		case g.Files > 0 && (g.Prompt < 2 || g.Length < g.Prompt+2):
			return fmt.Errorf("texts of %d tokens, %d of them given: want 2 given or more, and 2 more after them", g.Length, g.Prompt)
		case !(g.Greedy >= 0 && g.Greedy <= 1):
			return fmt.Errorf("--greedy %g: want a share, 0 to 1", g.Greedy)
		}
	}
	return nil
}

// fit sets the amount of text so that a course of the given number of steps reads each text once, in files of 64 texts.
func (t *HeadText) fit(steps int) {
	long := 0
	if t.long() {
		long = steps / t.LongEvery
	}
	const file = 64
	files := func(texts int) int { return (texts + file - 1) / file }
	t.Short.Texts, t.Long.Texts = file, file
	t.Short.Files, t.Long.Files = files((steps-long)*t.Rows), files(long*t.Rows/2)
}

func (t *HeadText) long() bool { return t.Long.Files > 0 }

// dealer deals rows of text by number.
type dealer interface {
	Row(n uint64, dst []int32)
	Fingerprint() string
}

// deal is texts of one length, and the first token that comes from the target, or from the corpus.
type deal struct {
	dealer
	length, from int
}

// HeadTexts is the texts of a HeadText, ready to read.
type HeadTexts struct {
	HeadText
	Sources []HeldText // held-out text

	short deal
	long  deal  // without a dealer: none
	deck  *deck // conversations, in place of both; nil: none

	rows []Conversation // of one step
}

// HeldText is texts that are not trained on: the target's continuations of beginnings, or its conversations.
type HeldText struct {
	Name  string
	Texts []Conversation
}

// inTexts cuts tokens into texts of one length, in each of which from tokens are given.
func inTexts(tokens []int32, length, from int) (list []Conversation) {
	for ; len(tokens) >= length; tokens = tokens[length:] {
		list = append(list, Conversation{Tokens: tokens[:length], From: from})
	}
	return list
}

// OpenTexts returns the texts of a recipe with the given number of steps and seed: the target's
// own, in DIR/generated, generated if they do not exist yet, or the corpus; and held-out text from
// the target.
func (j *Job) OpenTexts(ctx context.Context, t HeadText, steps int, seed uint64, text *Corpus) (*HeadTexts, error) {
	if j.Answers != nil {
		return j.openConversations(t, seed)
	}
	sets, err := t.sources(text.train)
	if err != nil {
		return nil, err
	}
	m, source := j.Target, FingerprintModel(j.Target)
	if j.Sparing {
		t.fit(steps)
	}
	if t.long() && t.Long.Length > m.Context() {
		t.Long.Files = 0
	}
	h, dir := &HeadTexts{HeadText: t}, filepath.Join(j.Dir, "generated")
	if err := j.estimate(ctx, t, dir, source, text); err != nil {
		return nil, err
	}
	for _, s := range text.valid {
		tokens, err := t.Held.tokens(ctx, j, m, filepath.Join(dir, "heldout", s.Name), source, alone(s))
		if err != nil {
			return nil, err
		}
		h.Sources = append(h.Sources, HeldText{s.Name, inTexts(tokens, t.Held.Length, t.Held.Prompt)})
	}
	for i, g := range []Generated{t.Short, t.Long} {
		if g.Files == 0 {
			continue
		}
		d := deal{length: g.Length, from: 2}
		if t.Text == "corpus" {
			// a mix adds a token to each row
			if d.dealer, err = data.NewMix(sets, g.Length-1, seed+uint64(i)); err != nil {
				return nil, err
			}
		} else {
			tokens, err := g.tokens(ctx, j, m, filepath.Join(dir, []string{"short", "long"}[i]), source, text.train)
			if err != nil {
				return nil, err
			}
			if tokens, err = t.begun(tokens, g, text.train); err != nil {
				return nil, err
			}
			if d.dealer, err = data.NewRows(tokens, g.Length, seed+uint64(i)); err != nil {
				return nil, err
			}
			d.from = g.Prompt
		}
		if i == 0 {
			h.short = d
		} else {
			h.long = d
		}
	}
	return h, nil
}

// openConversations deals the job's conversations, except those that are held out.
func (j *Job) openConversations(t HeadText, seed uint64) (*HeadTexts, error) {
	held, rest := holdOut(j.Answers, 2*HeldTexts)
	d, err := newDeck(rest, t.MicroRows, seed)
	return &HeadTexts{HeadText: t, Sources: held, deck: d}, err
}

// tokens returns the length of all texts for learning and of the held-out ones.
func (h *HeadTexts) tokens() (n int) {
	all := h.Sources
	if h.deck != nil {
		all = append(slices.Clip(all), HeldText{Texts: h.deck.list})
	} else {
		n = h.Short.Files*h.Short.Texts*h.Short.Length + h.Long.Files*h.Long.Texts*h.Long.Length
	}
	for _, s := range all {
		for i := range s.Texts {
			n += len(s.Texts[i].Tokens)
		}
	}
	return n
}

// alone returns a source without any others.
func alone(s *data.Set) []*data.Set {
	one := *s
	one.Weight = 1
	return []*data.Set{&one}
}

// estimate reports the least time that the target needs to generate missing text, and the disk
// space this takes.
func (j *Job) estimate(ctx context.Context, t HeadText, dir, source string, text *Corpus) error {
	tokens := 0
	add := func(g Generated, name string, prompts []*data.Set) error {
		n, err := g.missing(filepath.Join(dir, name), source, prompts)
		tokens += n
		return err
	}
	for _, s := range text.valid {
		if err := add(t.Held, filepath.Join("heldout", s.Name), alone(s)); err != nil {
			return err
		}
	}
	if t.Text != "corpus" {
		if err := errors.Join(add(t.Short, "short", text.train), add(t.Long, "long", text.train)); err != nil {
			return err
		}
	}
	if tokens == 0 {
		return nil
	}
	took, err := generationTime(ctx, j.Target, tokens)
	if err != nil {
		return err
	}
	j.Notef("the target is to generate %d tokens: at least %v, and %d MB of the disk",
		tokens, took.Round(time.Second), (tokens*4+1<<20-1)>>20)
	return nil
}

// sources returns the part of the training text that Only names.
func (t *HeadText) sources(all []*data.Set) ([]*data.Set, error) {
	if t.Only == "" {
		return all, nil
	}
	var names []string
	for _, s := range all {
		if s.Name == t.Only {
			return []*data.Set{s}, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("--only %q: the training text has no such source: want one of %s", t.Only, strings.Join(names, ", "))
}

// begun returns the generated texts whose beginning came from the source that Only names: the
// others stay in the files, for other heads.
func (t *HeadText) begun(tokens []int32, g Generated, sets []*data.Set) ([]int32, error) {
	if t.Only == "" {
		return tokens, nil
	}
	mix, err := g.beginnings(sets)
	if err != nil {
		return nil, err
	}
	var kept []int32
	for i := range len(tokens) / g.Length {
		if mix.Source(uint64(i)) == t.Only {
			kept = append(kept, tokens[i*g.Length:(i+1)*g.Length]...)
		}
	}
	return kept, nil
}

// Beginnings returns n passages of the training text, of 192 tokens each.
func (c *Corpus) Beginnings(n int) (list [][]int32, err error) {
	const length = 192
	mix, err := data.NewMix(c.train, length, 3)
	if err != nil {
		return nil, err
	}
	for i := range n {
		row := make([]int32, length+1)
		mix.Row(uint64(i), row)
		list = append(list, row[:length])
	}
	return list, nil
}

// Examples returns some texts that the head will read, of one length.
func (t *HeadTexts) Examples() (texts [][]int32) {
	const n = 16
	if t.deck == nil {
		return TokensOf(t.Sample(n))
	}
	from := max(0, len(t.deck.list)/2-n/2) // by length: some in the middle, cut to the shortest of them
	some := t.deck.list[from:min(len(t.deck.list), from+n)]
	for _, c := range some {
		texts = append(texts, c.Tokens[:len(some[0].Tokens)])
	}
	return texts
}

// TextLength is the number of tokens in a text; for conversations, their mean.
func (t *HeadTexts) TextLength() int {
	if t.deck != nil {
		return t.deck.meanLength()
	}
	return t.short.length
}

// Sample returns the first n texts that the head will read.
func (t *HeadTexts) Sample(n int) (texts []Conversation) {
	if t.deck != nil {
		n = min(n, len(t.deck.list))
	}
	for i := range n {
		if t.deck != nil {
			texts = append(texts, *t.deck.text(i))
		} else {
			texts = append(texts, t.short.read(uint64(i), nil))
		}
	}
	return texts
}

// read reads the n-th text, into tokens if that has the right length.
func (d *deal) read(n uint64, tokens []int32) Conversation {
	if len(tokens) != d.length {
		tokens = make([]int32, d.length)
	}
	d.Row(n, tokens)
	return Conversation{Tokens: tokens, From: d.from}
}

// TextFingerprints identify the texts that are dealt.
func (t *HeadTexts) TextFingerprints() []string {
	if t.deck != nil {
		return []string{t.deck.fingerprint()}
	}
	f := []string{t.short.Fingerprint()}
	if t.long.dealer != nil {
		f = append(f, t.long.Fingerprint())
	}
	return f
}

// phase returns the source of a step's texts, the number of the first one, and how many there are.
// Every LongEvery-th step takes long ones.
func (t *HeadTexts) phase(step int) (d *deal, first, rows int) {
	if t.long.dealer == nil {
		return &t.short, step * t.Rows, t.Rows
	}
	every := t.LongEvery
	if step%every == every-1 {
		return &t.long, step / every * (t.Rows / 2), t.Rows / 2
	}
	return &t.short, (step - step/every) * t.Rows, t.Rows
}

// Step reads the texts of a step, which are valid until the next is read; first is the number of
// the first of them.
func (t *HeadTexts) Step(step int) (first int, texts []Conversation) {
	if t.deck != nil {
		first = step * t.Rows
		t.rows = t.rows[:0]
		for i := range t.Rows {
			t.rows = append(t.rows, *t.deck.text(first + i))
		}
		return first, t.rows
	}
	d, first, rows := t.phase(step)
	for i := range rows {
		if i == len(t.rows) {
			t.rows = append(t.rows, Conversation{})
		}
		t.rows[i] = d.read(uint64(first+i), t.rows[i].Tokens)
	}
	return first, t.rows[:rows]
}

// Interim measures read the first HeldTexts texts of a source, and the first HeldTokens tokens that
// the target said in each.
const (
	HeldTexts  = 8
	HeldTokens = 128
)

// Each calls f with the first n texts of a source, and with the places after which a head drafts:
// up to tokens tokens that the target said, none of them among the last few.
func (t *HeldText) Each(n, tokens, last int, f func(text []int32, places []int) error) error {
	for _, c := range t.Texts[:min(n, len(t.Texts))] {
		var places []int
		for p := c.From; p < min(c.From+tokens, len(c.Tokens)-last); p++ {
			places = append(places, p)
		}
		if len(places) == 0 {
			continue
		}
		if err := f(c.Tokens, places); err != nil {
			return err
		}
	}
	return nil
}
