package grove

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// logprobs computes the log-probabilities of a generation's tokens from the logits that they are sampled from.
type logprobs struct {
	top    int // number of likeliest tokens at each position
	prompt int // number of the prompt's tokens

	ofPrompt, ofOutput []TokenLogprobs // not yet taken
	tokens             []int32         // scratch: the likeliest tokens, and their logits
	largest            []float32
}

// add takes the logits of the token at a position of the text. Positions follow each other, from the second on.
func (l *logprobs) add(place int, token int32, logits []float32) {
	if place >= l.prompt {
		l.ofOutput = append(l.ofOutput, l.at(token, logits))
		return
	}
	l.ofPrompt = append(l.ofPrompt, l.at(token, logits))
}

// take returns the log-probabilities added since the last take.
func (l *logprobs) take() (prompt, output []TokenLogprobs) {
	prompt, output = l.ofPrompt, l.ofOutput
	l.ofPrompt, l.ofOutput = nil, nil
	return prompt, output
}

// at returns the log-softmax of the logits, for a token and for the likeliest ones. Of equal
// logits, that of the smaller token comes first.
func (l *logprobs) at(token int32, logits []float32) TokenLogprobs {
	n := max(l.top, 1)
	if l.tokens == nil {
		l.tokens = make([]int32, n)
		l.largest = make([]float32, n)
	}
	n = simd.TopK(logits, l.tokens, l.largest)
	most := l.largest[0]
	log := math.Log(simd.SumExp(logits, most))
	of := func(x float32) float32 { return float32(float64(x) - float64(most) - log) }
	p := TokenLogprobs{Logprob: Logprob{token, of(logits[token])}}
	for i := range min(n, l.top) {
		p.Top = append(p.Top, Logprob{l.tokens[i], of(l.largest[i])})
	}
	return p
}
