package convert

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/model"
)

// llama3Rope is the RoPE scaling of Llama 3.1, in config.json's words.
type llama3Rope struct{ factor, low, high, original float64 }

// findLlama3 finds the scaling that gives the factors a GGUF file holds, among those with the frequency bounds that all of
// Llama's models use and an original context that is a power of two.
func findLlama3(factors []float32, base float64, dims int) (*llama3Rope, error) {
	top := float32(1)
	for _, f := range factors {
		top = max(top, f)
	}
	for original := 128.0; original <= 1<<24; original *= 2 {
		r := &llama3Rope{float64(top), 1, 4, original}
		same := true
		for i, f := range model.Llama3Factors(base, dims, r.factor, r.low, r.high, r.original) {
			if math.Abs(float64(f-factors[i])) > 1e-5*float64(f) {
				same = false
				break
			}
		}
		if same {
			return r, nil
		}
	}
	return nil, fmt.Errorf("tensor rope_freqs.weight is not Llama 3's scaling: config.json has no place for it")
}
