// Sampling options and their ranges.

package sample

import (
	"fmt"
	"github.com/grovellm/grove/internal/speculate/badfield"
	"math"
)

// Params say how a token is chosen. The zero value is greedy decoding.
type Params struct {
	Temperature float32 // 0: the largest logit; 1: the model's own distribution
	TopK        int     // keep the k largest logits; 0: all
	TopP        float32 // keep the fewest tokens whose probability reaches p; 0 or 1: all
	MinP        float32 // keep tokens at least this share as likely as the likeliest; 0: all

	RepetitionPenalty float32 // positive logits of tokens seen are divided by it, negative ones multiplied; 0 or 1: none
	PresencePenalty   float32 // subtracted from the logit of tokens seen
	FrequencyPenalty  float32 // subtracted from the logit for each time the token was seen
	PenaltyLast       int     // number of tokens before the position that penalties count; 0: the whole text, prompt included
	PenaltyFrom       int     // presence and frequency penalties count tokens from this position of the text on

	LogitBias map[int32]float32 // added to logits; minus infinity bans a token
	Seed      uint64            // the noise is a function of it, at temperatures above 0
}

// maxTemperature and the other bounds are far outside of use; they keep arithmetic finite.
const (
	maxTemperature = 100
	maxRepetition  = 100
	maxPenalty     = 1000
)

func rangef(field, format string, args ...any) error {
	return &badfield.Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// Validate reports the first field that is out of range: its name, its value, and the valid range.
func (p *Params) Validate() error {
	for _, f := range []struct {
		name     string
		value    float32
		low, top float32
	}{
		{"Temperature", p.Temperature, 0, maxTemperature},
		{"TopP", p.TopP, 0, 1},
		{"MinP", p.MinP, 0, 1},
		{"RepetitionPenalty", p.RepetitionPenalty, 0, maxRepetition},
		{"PresencePenalty", p.PresencePenalty, -maxPenalty, maxPenalty},
		{"FrequencyPenalty", p.FrequencyPenalty, -maxPenalty, maxPenalty},
	} {
		if !(f.value >= f.low && f.value <= f.top) {
			return rangef(f.name, "%g: want %g to %g", f.value, f.low, f.top)
		}
	}
	if p.Temperature > 0 && p.Temperature < minTemperature {
		return rangef("Temperature", "%g: want 0, or %g to %d", p.Temperature, float32(minTemperature), maxTemperature)
	}
	if p.RepetitionPenalty > 0 && p.RepetitionPenalty < 1/float32(maxRepetition) {
		return rangef("RepetitionPenalty", "%g: want 0 (none), or %g to %d", p.RepetitionPenalty,
			1/float32(maxRepetition), maxRepetition)
	}
	if p.TopK < 0 {
		return rangef("TopK", "%d: want 0 (all) or more", p.TopK)
	}
	if p.PenaltyLast < 0 {
		return rangef("PenaltyLast", "%d: want 0 (the whole text) or more", p.PenaltyLast)
	}
	if p.PenaltyFrom < 0 {
		return rangef("PenaltyFrom", "%d: want 0 (the whole text) or more", p.PenaltyFrom)
	}
	for token, bias := range p.LogitBias {
		if token < 0 {
			return rangef("LogitBias", "token %d: want 0 or more", token)
		}
		if bias != bias || math.IsInf(float64(bias), 1) {
			return rangef("LogitBias", "%g for token %d: want a number, or minus infinity", bias, token)
		}
	}
	return nil
}

// minTemperature is the least temperature that is not 0: below it logit/temperature could overflow.
const minTemperature = 1e-4

// narrows reports whether top-k, top-p or min-p leave tokens out, so that the choice of one token
// depends on others' logits.
func (p *Params) narrows() bool {
	return p.Temperature > 0 && (p.TopK > 0 || p.TopP > 0 && p.TopP < 1 || p.MinP > 0)
}

// penalised reports whether the choice depends on tokens before the position.
func (p *Params) penalised() bool {
	return p.RepetitionPenalty != 0 && p.RepetitionPenalty != 1 || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}
