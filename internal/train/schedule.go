package train

import "math"

// Schedule is the course of the learning rate, as a share of its peak: a linear rise over Warmup of
// the steps, a plateau, then a fall to Floor over the last Cooldown of the steps, linear or as half
// a cosine.
type Schedule struct {
	Warmup, Cooldown, Floor float64
	Cosine                  bool
}

// Plateau is the schedule of grove's recipes: after its rise, the rate stays constant, and falls
// linearly in the last 65 % of the steps.
func Plateau(warmup float64) Schedule { return Schedule{Warmup: warmup, Cooldown: 0.65, Floor: 0.02} }

// falling returns a schedule that starts falling to 0 as soon as it has risen.
func falling(warmup float64, cosine bool) Schedule {
	return Schedule{Warmup: warmup, Cooldown: 1 - warmup, Cosine: cosine}
}

func (s Schedule) at(step, steps int) float32 {
	t := float64(step) / float64(steps)
	switch {
	case t < s.Warmup:
		return float32((float64(step) + 1) / (s.Warmup*float64(steps) + 1))
	case t < 1-s.Cooldown:
		return 1
	}
	x := (1 - t) / s.Cooldown // 1 at the start of the fall, 0 at the end
	if s.Cosine {
		x = (1 - math.Cos(math.Pi*x)) / 2
	}
	return float32(s.Floor + (1-s.Floor)*x)
}
