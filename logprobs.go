package grove

import (
	"math"
	"slices"
)

// logprobs computes the log-probabilities of a generation's tokens from the logits that they are chosen from.
type logprobs struct {
	top    int // likeliest tokens at each place
	prompt int // tokens of the prompt

	ofPrompt, ofOutput []TokenLogprobs // that were not taken yet
	likeliest          []Logprob       // scratch
}

// add takes the logits of the token at a place of the text. Places follow each other, from the second on.
func (l *logprobs) add(place int, token int32, logits []float32) {
	if place >= l.prompt {
		l.ofOutput = append(l.ofOutput, l.at(token, logits))
		return
	}
	l.ofPrompt = append(l.ofPrompt, l.at(token, logits))
}

// take returns what came since the last take.
func (l *logprobs) take() (prompt, output []TokenLogprobs) {
	prompt, output = l.ofPrompt, l.ofOutput
	l.ofPrompt, l.ofOutput = nil, nil
	return prompt, output
}

// at is the log-softmax of the logits, for a token and for the likeliest ones. Of equal logits the
// smaller token is first.
func (l *logprobs) at(token int32, logits []float32) TokenLogprobs {
	most := float64(slices.Max(logits))
	sum := 0.0
	l.likeliest = l.likeliest[:0]
	for t, x := range logits {
		sum += math.Exp(float64(x) - most)
		if n := len(l.likeliest); n < l.top || n > 0 && x > l.likeliest[n-1].Logprob {
			at, _ := slices.BinarySearchFunc(l.likeliest, x, func(p Logprob, x float32) int {
				if p.Logprob >= x {
					return -1
				}
				return 1
			})
			l.likeliest = slices.Insert(l.likeliest[:min(n, l.top-1)], at, Logprob{int32(t), x})
		}
	}
	of := func(x float32) float32 { return float32(float64(x) - most - math.Log(sum)) }
	p := TokenLogprobs{Logprob: Logprob{token, of(logits[token])}, Top: slices.Clone(l.likeliest)}
	for i := range p.Top {
		p.Top[i].Logprob = of(p.Top[i].Logprob)
	}
	return p
}
