// Sampling options and their ranges.

package sample

import (
	"fmt"
	"math"
)

// Params says how a token is chosen. The zero value is greedy decoding.
type Params struct {
	Temperature float32 // 0: the largest logit; 1: the model's own distribution
	TopK        int     // keep the k largest logits; 0: all
	TopP        float32 // keep the fewest tokens whose probability reaches p; 0 or 1: all
	MinP        float32 // keep tokens at least this share as likely as the likeliest; 0: all

	RepetitionPenalty float32 // positive logits of tokens seen are divided by it, negative ones multiplied; 0 or 1: none
	PresencePenalty   float32 // taken from the logit of tokens seen
	FrequencyPenalty  float32 // taken from the logit once for each time the token was seen
	PenaltyLast       int     // penalties look at so many tokens before the position; 0: the whole text, prompt included

	LogitBias map[int32]float32 // added to logits; minus infinity bans a token
	Seed      uint64            // the noise is a function of it, at temperatures above 0
}

// maxTemperature and the other bounds are far outside of use; they keep arithmetic finite.
const (
	maxTemperature = 100
	maxRepetition  = 100
	maxPenalty     = 1000
)

// Validate reports the first field out of range.
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
			return fmt.Errorf("sample: %s is %g: want %g to %g", f.name, f.value, f.low, f.top)
		}
	}
	if p.Temperature > 0 && p.Temperature < minTemperature {
		return fmt.Errorf("sample: Temperature is %g: want 0, or at least %g", p.Temperature, float32(minTemperature))
	}
	if p.RepetitionPenalty > 0 && p.RepetitionPenalty < 1/float32(maxRepetition) {
		return fmt.Errorf("sample: RepetitionPenalty is %g: want 0 (none), or %g to %d", p.RepetitionPenalty, 1/float32(maxRepetition), maxRepetition)
	}
	if p.TopK < 0 {
		return fmt.Errorf("sample: TopK is %d: want 0 (all) or more", p.TopK)
	}
	if p.PenaltyLast < 0 {
		return fmt.Errorf("sample: PenaltyLast is %d: want 0 (the whole text) or more", p.PenaltyLast)
	}
	for token, bias := range p.LogitBias {
		if token < 0 {
			return fmt.Errorf("sample: LogitBias names token %d: want 0 or more", token)
		}
		if bias != bias || math.IsInf(float64(bias), 1) {
			return fmt.Errorf("sample: LogitBias of token %d is %g: want a number, or minus infinity", token, bias)
		}
	}
	return nil
}

// minTemperature is the least temperature that is not 0: below it logit/temperature could overflow.
const minTemperature = 1e-4

// Penalised reports whether the choice depends on tokens before the position.
func (p *Params) Penalised() bool {
	return p.RepetitionPenalty != 0 && p.RepetitionPenalty != 1 || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}
