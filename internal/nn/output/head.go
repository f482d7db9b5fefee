package output

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// NoToken fills up a panel that has fewer tokens than outputs. Its logit is minus infinity.
const NoToken = -1

// noRow is the row of a token that has none.
const noRow = -1

// TokenHead is an output head addressed by tokens: a drafter's may have its own vocabulary, part of the target's.
type TokenHead struct {
	*nn.Linear
	rows []int32 // for each token, its row; nil: row i is token i's
}

// NewTokenHead makes a TokenHead from l and the tokens of its rows, which must be below vocab; nil: row i is token i's.
func NewTokenHead(l *nn.Linear, tokens []int32, vocab int) (*TokenHead, error) {
	h := &TokenHead{Linear: l}
	if tokens == nil {
		return h, nil
	}
	if len(tokens) != l.W.Out() {
		return nil, fmt.Errorf("output: %d tokens of a head of %d rows: want as many", len(tokens), l.W.Out())
	}
	h.rows = slices.Repeat([]int32{noRow}, vocab)
	for i, token := range tokens {
		if uint(token) >= uint(vocab) {
			return nil, fmt.Errorf("output: row %d of a head is of token %d: want one of %d", i, token, vocab)
		}
		h.rows[token] = int32(i)
	}
	return h, nil
}

// Vocab is one past the largest token that may have a row.
func (h *TokenHead) Vocab() int {
	if h.rows == nil {
		return h.W.Out()
	}
	return len(h.rows)
}

// Row returns the row of a token, or -1 if it has none.
func (h *TokenHead) Row(token int32) int {
	switch {
	case uint(token) >= uint(h.Vocab()):
		return noRow
	case h.rows == nil:
		return int(token)
	}
	return int(h.rows[token])
}

// Rows maps tokens to their rows in a head; nil: row i is token i's.
type Rows map[int32]int32

// RowsOf returns the rows of a head with the given tokens.
func RowsOf(tokens []int32) Rows {
	if tokens == nil {
		return nil
	}
	rows := make(Rows, len(tokens))
	for i, token := range tokens {
		rows[token] = int32(i)
	}
	return rows
}

// Row returns a token's row, or -1 if it has none; the token -1 has none.
func (r Rows) Row(token int32) int32 {
	if r == nil {
		return token
	}
	if row, ok := r[token]; ok {
		return row
	}
	return noRow
}

// OrderedHead is rows of an output head in an order that we choose, in whole panels.
type OrderedHead struct {
	nn.Linear
	Tokens []int32 // of each row; a panel's last may be NoToken. nil: rows have no tokens, see Shortlist.AddExtra

	from   *TokenHead
	rows   []int32 // for each token, its row, or noRow
	filled []int   // for each panel, how many rows have a token
}

// NewOrderedHead makes a head from the rows of the given tokens, copied from head. To begin a new
// panel, fill up the one before with NoToken. All may be NoToken, and be Set later.
func NewOrderedHead(pool *par.Pool, head *TokenHead, tokens []int32) (*OrderedHead, error) {
	n := (len(tokens) + gemm.Panel - 1) / gemm.Panel * gemm.Panel
	for i, token := range tokens {
		if token != NoToken && head.Row(token) < 0 {
			return nil, fmt.Errorf("output: row %d of a head is of token %d: want one of the head's, of %d tokens", i, token, head.Vocab())
		}
	}
	w, err := gemm.New(head.W.Type(), n, head.W.In())
	if err != nil {
		return nil, err
	}
	h := &OrderedHead{Linear: nn.Linear{W: w, Scale: head.Scale, Cap: head.Cap}, Tokens: make([]int32, n), from: head,
		rows: slices.Repeat([]int32{noRow}, head.Vocab()), filled: make([]int, n/gemm.Panel)}
	for i := range h.Tokens {
		h.Tokens[i] = NoToken
		if i < len(tokens) && tokens[i] != NoToken {
			h.name(i, tokens[i])
		}
	}
	if head.Bias != nil {
		h.Bias = make([]float32, n)
	}
	pool.Run(h.Panels(), (*fillJob)(h))
	return h, nil
}

// fillJob fills a panel of a head.
type fillJob OrderedHead

func (h *fillJob) Do(_, p int) {
	for i := p * gemm.Panel; i < (p+1)*gemm.Panel; i++ {
		(*OrderedHead)(h).Fill(i)
	}
}

// Set assigns a token of the original head to row i. It takes effect once Fill has run.
func (h *OrderedHead) Set(i int, token int32) {
	h.Unset(i)
	h.name(i, token)
}

// Fill copies the weights of row i's token, if it has one. Other rows may be filled at the same time.
func (h *OrderedHead) Fill(i int) {
	if h.Tokens[i] != NoToken {
		h.copy(i)
	}
}

// Unset takes the token from row i, the last row of its panel that has one.
func (h *OrderedHead) Unset(i int) {
	token := h.Tokens[i]
	if token == NoToken {
		return
	}
	h.Tokens[i] = NoToken
	h.filled[i/gemm.Panel]--
	if h.rows[token] == int32(i) {
		h.rows[token] = noRow
	}
}

// name assigns a token to row i.
func (h *OrderedHead) name(i int, token int32) {
	h.Tokens[i], h.rows[token] = token, int32(i)
	h.filled[i/gemm.Panel]++
}

// copy is Fill for a row that has a token.
func (h *OrderedHead) copy(i int) {
	from := h.from.Row(h.Tokens[i])
	h.W.CopyRow(i, h.from.W, from)
	if h.Bias != nil {
		h.Bias[i] = h.from.Bias[from]
	}
}

// Row returns the row of a token, the last if there are several, or -1 if there is none.
func (h *OrderedHead) Row(token int32) int {
	if uint(token) >= uint(len(h.rows)) {
		return noRow
	}
	return int(h.rows[token])
}

// Panels is the number of panels.
func (h *OrderedHead) Panels() int { return h.W.Panels() }
