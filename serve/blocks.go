package serve

import "slices"

// block is a part of an answer, for protocols that number the parts: reasoning, text or a call of a tool.
type block struct {
	kind  blockKind
	text  string    // the text so far; the arguments of a call
	call  toolCall  // its id and name
	probs []logprob // of reasoning or text
}

type blockKind int

const (
	reasoningBlock blockKind = iota
	textBlock
	callBlock
)

// blocks sorts an answer's pieces into blocks.
type blocks struct {
	list  []*block
	open  bool      // the last block is unfinished
	probs []logprob // of tokens whose text has not come yet
}

// step is one change that a piece makes to a block.
type step struct {
	at    int
	kind  stepKind
	text  string // added
	probs []logprob
	*block
}

type stepKind int

const (
	opens stepKind = iota
	adds
	closes
)

// add takes a piece, and returns the steps that it makes. In an answer, reasoning precedes text and
// text precedes calls.
func (b *blocks) add(p *piece) (steps []step) {
	b.probs = append(b.probs, p.probs...)
	before := slices.IndexFunc(b.probs, func(l logprob) bool { return l.end > p.begins || l.offset == p.begins })
	if before < 0 {
		before = len(b.probs)
	}
	if p.reasoning != "" {
		steps = b.append(steps, reasoningBlock, nil, p.reasoning, slices.Clone(b.probs[:before]))
	}
	if p.reasoning != "" || p.content != "" {
		b.probs = b.probs[before:]
	}
	if p.content != "" {
		steps = b.append(steps, textBlock, nil, p.content, b.probs)
		b.probs = nil
	}
	for i := range p.calls {
		steps = b.append(steps, callBlock, &p.calls[i], p.calls[i].Function.Arguments, nil)
	}
	if p.result != nil {
		steps = b.close(steps)
	}
	return steps
}

// append adds text to the last block, or to a new one if the kind differs or a call begins.
func (b *blocks) append(steps []step, kind blockKind, call *toolCall, text string, probs []logprob) []step {
	if !b.open || b.list[len(b.list)-1].kind != kind || call != nil && call.ID != "" {
		steps = b.close(steps)
		now := &block{kind: kind}
		if call != nil {
			now.call = *call
		}
		b.list, b.open = append(b.list, now), true
		steps = append(steps, step{at: len(b.list) - 1, kind: opens, block: now})
	}
	at := len(b.list) - 1
	now := b.list[at]
	now.text += text
	now.probs = append(now.probs, probs...)
	if text != "" {
		steps = append(steps, step{at, adds, text, probs, now})
	}
	return steps
}

func (b *blocks) close(steps []step) []step {
	if !b.open {
		return steps
	}
	b.open = false
	at := len(b.list) - 1
	return append(steps, step{at: at, kind: closes, block: b.list[at]})
}
