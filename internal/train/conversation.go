package train

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
)

// Conversation is a text whose end comes from the target: a head learns its tokens from From to the
// last, the others are given. In a conversation of several turns, each answer makes one Conversation,
// which ends with it, so every answer is its own row of attention and sees only what came before it.
type Conversation struct {
	Tokens []int32 `json:"tokens"`
	From   int     `json:"from"`
	Greedy bool    `json:"greedy,omitempty"` // generated at temperature 0
}

// Places returns the first and the last token of a text after which a head learns the next token.
func (c *Conversation) Places() (first, last int) { return max(c.From-1, 1), len(c.Tokens) - 2 }

// Draw draws places of the text with a number, as DrawAnchors does: those after which a head may
// learn, none before least.
func (c *Conversation) Draw(seed uint64, number, least, block, n int, share float64) []int {
	first, last := c.Places()
	return DrawAnchors(seed<<32+uint64(len(c.Tokens)), uint64(number), c.Tokens, max(first, min(least, last)),
		last, block, n, share)
}

// TokensOf returns the tokens of some texts.
func TokensOf(texts []Conversation) (list [][]int32) {
	for _, t := range texts {
		list = append(list, t.Tokens)
	}
	return list
}

// PartsOf cuts texts into parts [from, to) of equal lengths, with at most most texts in a part:
// each part is one forward and one backward pass.
func PartsOf(texts []Conversation, most int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for from := 0; from < len(texts); {
			to := from + 1
			for to < min(len(texts), from+most) && len(texts[to].Tokens) == len(texts[from].Tokens) {
				to++
			}
			if !yield(from, to) {
				return
			}
			from = to
		}
	}
}

// deck deals conversations: each once per epoch, in an order specific to the epoch, with
// conversations of equal length grouped, up to together at a time.
type deck struct {
	list     []Conversation // by length
	together int
	seed     uint64

	epoch int // the epoch of the current order
	order []int
}

// newDeck deals the conversations that contain something to learn.
func newDeck(all []Conversation, together int, seed uint64) (*deck, error) {
	d := &deck{together: together, seed: seed, epoch: -1}
	for i := range all {
		if first, last := all[i].Places(); first <= last {
			d.list = append(d.list, all[i])
		}
	}
	if len(d.list) == 0 {
		return nil, fmt.Errorf("none of %d answers beside those to measure on has a token to learn from: name more or other prompts, or longer answers", len(all))
	}
	slices.SortStableFunc(d.list, func(a, b Conversation) int { return cmp.Compare(len(a.Tokens), len(b.Tokens)) })
	return d, nil
}

// text returns the n-th conversation that is dealt.
func (d *deck) text(n int) *Conversation {
	if epoch := n / len(d.list); epoch != d.epoch {
		d.shuffle(epoch)
	}
	return &d.list[d.order[n%len(d.list)]]
}

func (d *deck) shuffle(epoch int) {
	d.epoch = epoch
	d.order = d.order[:0]
	r := rand.New(rand.NewPCG(d.seed, uint64(epoch)))
	// Every epoch groups different conversations of equal length.
	mixed := r.Perm(len(d.list))
	slices.SortStableFunc(mixed, func(a, b int) int { return cmp.Compare(len(d.list[a].Tokens), len(d.list[b].Tokens)) })
	var sorted []Conversation
	for _, i := range mixed {
		sorted = append(sorted, d.list[i])
	}
	var parts [][]int
	for from, to := range PartsOf(sorted, d.together) {
		parts = append(parts, mixed[from:to])
	}
	for _, p := range r.Perm(len(parts)) {
		d.order = append(d.order, parts[p]...)
	}
}

// fingerprint identifies the dealt texts: other conversations or seeds have another one.
func (d *deck) fingerprint() string { return Fingerprint(d.list, fmt.Sprint(d.together, d.seed)) }

// meanLength returns the mean number of tokens in the conversations.
func (d *deck) meanLength() int {
	tokens := 0
	for _, c := range d.list {
		tokens += len(c.Tokens)
	}
	return tokens / len(d.list)
}

// holdOut takes some conversations of each temperature out of a list, for measuring, and returns them under a name
// for the temperature, and the rest: conversations that are neither one of these nor a continuation of one.
func holdOut(all []Conversation, most int) (held []HeldText, rest []Conversation) {
	const part = 23 // one in this many is held out: a prime, so that alternating temperatures all are
	held = []HeldText{{Name: "T=0"}, {Name: "T=1"}}
	for i, c := range all {
		t := &held[1]
		if c.Greedy {
			t = &held[0]
		}
		if i%part == 0 && (i == 0 || !continues(all[i-1], c)) && len(t.Texts) < most && len(c.Tokens)-c.From >= 16 {
			t.Texts = append(t.Texts, c)
		}
	}
	for _, c := range all {
		like := func(h Conversation) bool { return slices.Equal(h.Tokens, c.Tokens) || continues(h, c) }
		if !slices.ContainsFunc(held, func(t HeldText) bool { return slices.ContainsFunc(t.Texts, like) }) {
			rest = append(rest, c)
		}
	}
	return slices.DeleteFunc(held, func(t HeldText) bool { return len(t.Texts) == 0 }), rest
}

// continues reports whether a conversation continues another.
func continues(first, then Conversation) bool {
	return len(then.Tokens) > len(first.Tokens) && slices.Equal(first.Tokens, then.Tokens[:len(first.Tokens)])
}

// describeConversations returns a table of a head's training conversations.
func describeConversations(all []Conversation) string {
	var given, said, count [2]int // by temperature, those above 0 first
	for _, c := range all {
		i := 0
		if c.Greedy {
			i = 1
		}
		count[i]++
		given[i] += c.From
		said[i] += len(c.Tokens) - c.From
	}
	var b strings.Builder
	b.WriteString("| answers | number | tokens of prompts | tokens of answers |\n|---|---|---|---|\n")
	for i, name := range []string{"sampled", "greedy"} {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", name, count[i], given[i], said[i])
	}
	return b.String()
}
