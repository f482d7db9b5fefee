// Package sequence has the state that drafters with a network keep for their sequences, whatever
// trees they make: the text that the network has read, how the target chooses tokens, and what
// shortlists and the modifier +text know about the text.
package sequence

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/sample"
)

// Shared is what the sequences of one drafter have in common. A drafter embeds it.
type Shared struct {
	Pool     *par.Pool
	Vocab    int               // of the target
	Samplers []*sample.Sampler // scratch of each worker of the pool: see textrank.Samplers
	Layout   TextOptions       // of the text read
	Cache    *nn.Pages         // of its keys and values

	Methods []shortlist.Method // one for all rows, or one for each depth; none: the head computes all tokens
	Stats   shortlist.Stats    // of Methods
	Weights *textrank.Model    // of +text; nil without it
	First   [2]textrank.FirstPass
	Commits textrank.Commits // of the current Commit
}

// Pages returns the memory of the text read; see draft.Drafter.
func (d *Shared) Pages() []draft.Pages { return []draft.Pages{d.Cache} }

// Learned returns the weights of +text; see draft.Drafter.
func (d *Shared) Learned() [][]float32 { return d.Weights.Learned() }

// ListStats returns the statistics of the shortlists.
func (d *Shared) ListStats() shortlist.Stats { return d.Stats.OfHead() }

// Resume shares rows read in another sequence; see draft.Drafter.
func (d *Shared) Resume(s draft.State, n int, from draft.State, common int) int {
	return Resume(d, s, n, from, common)
}

// Resume is draft.Drafter.Resume for a drafter that reads Texts.
func Resume(d Reader, s draft.State, n int, from draft.State, common int) int {
	var other *Text
	if from != nil {
		other = d.TextOf(from)
	}
	return d.TextOf(s).Resume(n, other, common)
}

// TextOf returns the text that a state reads.
func (d *Shared) TextOf(s draft.State) *Text { return s.(state).sequence().Read }

// state is a drafter's state, which embeds a Sequence.
type state interface{ sequence() *Sequence }

// Sequence is a drafter's state for one sequence.
type Sequence struct {
	Sampler *sample.Sampler   // chooses as the target will
	History *sample.History   // the committed text, if penalties use it; otherwise nil
	Warm    int               // 1 above temperature 0
	At      int               // committed tokens: the position of the next root
	Read    *Text             // rows read, and rows that wait to be read
	Words   []shortlist.State // what each of Methods knows about the text
	Text    *textrank.Text    // of +text; nil without it
}

func (s *Sequence) sequence() *Sequence { return s }

// Begin returns a new sequence.
func (d *Shared) Begin(o draft.Options) (Sequence, error) {
	return d.Over(NewText(d.Layout, d.Cache.NewCache()), o.Ranking(), o.Memory)
}

// Over returns a new sequence that reads a text and ranks its candidates by p.
func (d *Shared) Over(read *Text, p sample.Params, memory draft.Memory) (s Sequence, err error) {
	s.Read = read
	if s.Sampler, err = sample.New(p, d.Vocab); err != nil {
		return s, err
	}
	if p.Temperature > 0 {
		s.Warm = 1
	}
	s.History = sample.NewHistory(&p)
	if d.Weights != nil {
		s.Text = textrank.NewText(&p, d.Weights, memory)
	}
	for _, m := range d.Methods {
		s.Words = append(s.Words, m.Begin(&p))
	}
	return s, nil
}

// Close frees the sequence's memory.
func (s *Sequence) Close() {
	s.Read.Close()
	for _, words := range s.Words {
		words.Close()
	}
	s.Text, s.Words = nil, nil
}

// Commit takes in rows of the target, which then wait to be read. With +text, the caller runs Commits
// after all sequences.
func (s *Sequence) Commit(d *Shared, r *draft.Rows) {
	for _, token := range r.Tokens {
		s.History.Push(token)
	}
	s.At += len(r.Tokens)
	if s.Text != nil {
		d.Commits.Learn(s.Text, &s.Text.Built, r, s.Sampler, s.History)
	}
	for _, words := range s.Words {
		shortlist.Tell(words, r)
	}
	s.Read.Commit(r)
}

// mostWaiting is how many rows of a sequence may wait for the next proposal to be read. A sequence
// that is decoded plainly costs copies of its taps, and now and then a pass over so many rows.
const mostWaiting = 64

// Due reports whether waiting rows are to be read now that r was committed: those of a prompt are read
// at once, many in a pass.
func (s *Sequence) Due(r *draft.Rows) bool {
	return r.Next < 0 || s.Read.Layers > 0 && s.Read.Waiting() >= mostWaiting
}

// ReadRows is the most rows that are read in one pass.
const ReadRows = 512
