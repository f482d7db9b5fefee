package bpe

import (
	"context"
	"fmt"
	"math"
)

// pair is two neighbouring tokens.
type pair struct{ left, right int32 }

// tally is the data about a pair.
type tally struct {
	pair
	count int64
	words []int32 // words that hold the pair, or once held it
}

type trainer struct {
	ids    []int32 // the words as tokens, one after another
	start  []int32 // where each word begins in ids
	size   []int32 // its current number of tokens
	times  []int64 // how often it occurs
	index  map[pair]int32
	pairs  []tally
	heap   candidates
	tokens []string
	known  map[string]bool // spellings of tokens
}

// Train learns a vocabulary from the counted words. It returns an error if no pair occurs twice
// before there are enough tokens.
func Train(ctx context.Context, c *Counter, o Options) (*Vocabulary, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if o.Pre != c.pre {
		return nil, fmt.Errorf("the words were cut as %s, the vocabulary is to be cut as %s: count them with the same options", c.pre, o.Pre)
	}
	t, err := newTrainer(ctx, c)
	if err != nil {
		return nil, err
	}
	v := &Vocabulary{Pre: o.Pre, Special: o.Special}
	want := o.Size - len(o.Special)
	for len(t.tokens) < want {
		if len(t.tokens)%256 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		i, ok := t.next()
		if !ok {
			return nil, fmt.Errorf("the text has repeated pairs for %d tokens only, not for %d: give more text or ask for a smaller vocabulary",
				len(t.tokens)+len(o.Special), o.Size)
		}
		p := t.pairs[i].pair
		if t.known[t.tokens[p.left]+t.tokens[p.right]] {
			continue
		}
		v.Merges = append(v.Merges, [2]int32{p.left, p.right})
		t.merge(i)
	}
	v.Tokens = t.tokens
	return v, nil
}

// newTrainer splits the words into bytes and counts their pairs.
func newTrainer(ctx context.Context, c *Counter) (*trainer, error) {
	t := &trainer{index: map[pair]int32{}, known: map[string]bool{}}
	var id [256]int32
	for i, b := range byteOrder() {
		id[b] = int32(i)
		t.tokens = append(t.tokens, string([]byte{b}))
		t.known[t.tokens[i]] = true
	}
	words, total := c.sorted(), 0
	for _, w := range words {
		total += len(w)
	}
	if total > math.MaxInt32 {
		return nil, fmt.Errorf("the different words have %d bytes together: want at most %d", total, math.MaxInt32)
	}
	t.ids = make([]int32, 0, total)
	for _, w := range words {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(w) < 2 {
			continue
		}
		n := int32(len(t.start))
		t.start = append(t.start, int32(len(t.ids)))
		t.size = append(t.size, int32(len(w)))
		t.times = append(t.times, c.words[w])
		for i := range len(w) {
			t.ids = append(t.ids, id[w[i]])
			if i > 0 {
				t.add(pair{id[w[i-1]], id[w[i]]}, c.words[w], n)
			}
		}
	}
	for i := range t.pairs {
		t.heap.push(candidate{t.pairs[i].pair, t.pairs[i].count, int32(i)})
	}
	return t, nil
}

// add counts a pair in a word.
func (t *trainer) add(p pair, times int64, word int32) {
	i, ok := t.index[p]
	if !ok {
		i = int32(len(t.pairs))
		t.index[p] = i
		t.pairs = append(t.pairs, tally{pair: p})
	}
	y := &t.pairs[i]
	y.count += times
	if n := len(y.words); n == 0 || y.words[n-1] != word {
		y.words = append(y.words, word)
	}
}

func (t *trainer) subtract(p pair, times int64) {
	if i, ok := t.index[p]; ok {
		t.pairs[i].count -= times
	}
}

// next takes the most frequent pair from the heap. Counts of pairs already there only fall, so an
// outdated entry is moved down to its place.
func (t *trainer) next() (int32, bool) {
	for len(t.heap) > 0 {
		c := t.heap[0]
		now := t.pairs[c.index].count
		switch {
		case now < 2:
			t.heap.pop()
		case now != c.count:
			t.heap[0].count = now
			t.heap.down(0)
		default:
			t.heap.pop()
			return c.index, true
		}
	}
	return 0, false
}

// merge makes a token from a pair and puts it into every word that holds the pair.
func (t *trainer) merge(i int32) {
	p, words := t.pairs[i].pair, t.pairs[i].words
	t.pairs[i].words = nil
	made := int32(len(t.tokens))
	t.tokens = append(t.tokens, t.tokens[p.left]+t.tokens[p.right])
	t.known[t.tokens[made]] = true
	fresh := len(t.pairs)
	for _, w := range words {
		t.rewrite(w, p, made)
	}
	// Only pairs with the new token can have grown, and all of these are new.
	for j := fresh; j < len(t.pairs); j++ {
		if y := &t.pairs[j]; y.count > 1 {
			t.heap.push(candidate{y.pair, y.count, int32(j)})
		}
	}
	t.pairs[i].count = 0
}

// rewrite replaces p by made in a word, from left to right, and updates the counts of the adjacent
// pairs.
func (t *trainer) rewrite(w int32, p pair, made int32) {
	ids, times := t.ids[t.start[w]:t.start[w]+t.size[w]], t.times[w]
	out := 0 // ids[:out] is rewritten; out never passes i
	for i := 0; i < len(ids); i++ {
		if i+1 == len(ids) || ids[i] != p.left || ids[i+1] != p.right {
			ids[out] = ids[i]
			out++
			continue
		}
		if out > 0 {
			t.subtract(pair{ids[out-1], p.left}, times)
			t.add(pair{ids[out-1], made}, times, w)
		}
		if i+2 < len(ids) {
			t.subtract(pair{p.right, ids[i+2]}, times)
			t.add(pair{made, ids[i+2]}, times, w)
		}
		ids[out] = made
		out++
		i++
	}
	t.size[w] = int32(out)
}
