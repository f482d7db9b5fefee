package train

// CourseFlags are the flags of all kinds of heads for the course of training.
type CourseFlags struct {
	Paper bool `recipe:"-" help:"Begin with the recipe of the head's paper and its authors' code, in place of grove's own. Other flags change it." group:"Training"`
	OptimizerFlags
}

// OptimizerFlags are the flags of everything that is trained.
type OptimizerFlags struct {
	Optimizer *string  `recipe:"-" enum:"muon,adamw" help:"Optimiser of the matrices: Muon, or AdamW for all weights, as in the papers." placeholder:"muon|adamw" group:"Training"`
	Rate      *float32 `recipe:"-" help:"Peak learning rate of the matrices." placeholder:"R" group:"Training"`
	AdamRate  *float32 `recipe:"Optimizer.Rate" needs:"Optimizer.Muon=true" help:"Peak learning rate of the other weights, when Muon trains the matrices." placeholder:"R" group:"Training"`
	Schedule  *string  `recipe:"-" enum:"plateau,linear,cosine" help:"The rate after warm-up: constant, then falling in the last 65% of the steps, or falling to 0 right away, linearly or as a cosine." placeholder:"plateau|linear|cosine" group:"Training"`
	Warmup    *float64 `recipe:"Schedule.Warmup" help:"Share of the steps for warm-up of the rate." placeholder:"S" group:"Training"`
	Clip      *float64 `help:"Maximum norm of the gradient, which is clipped to it; 0 means no limit." placeholder:"L" group:"Training"`
}

// SetCourse sets the values of a course that SetFlags does not: optimiser, rate and schedule.
func (f *OptimizerFlags) SetCourse(c *Course) {
	if f.Optimizer != nil {
		c.Optimizer.Muon = *f.Optimizer == "muon"
		if c.Optimizer.Muon && c.Optimizer.MuonRate == 0 {
			adam := c.Optimizer.AdamW
			c.Optimizer = DefaultOptimizer()
			c.Optimizer.AdamW = adam
		}
	}
	switch {
	case f.Rate == nil:
	case c.Optimizer.Muon:
		c.Optimizer.MuonRate = *f.Rate
	default:
		c.Optimizer.Rate = *f.Rate
	}
	switch {
	case f.Schedule != nil && *f.Schedule == "plateau":
		c.Schedule = Plateau(c.Schedule.Warmup)
	case f.Schedule != nil:
		c.Schedule = falling(c.Schedule.Warmup, *f.Schedule == "cosine")
	case f.Warmup != nil && c.Schedule.Floor == 0: // the fall begins where the rise ends
		c.Schedule = falling(c.Schedule.Warmup, c.Schedule.Cosine)
	}
}

// PaperCourse is the course of papers on draft heads and their code: AdamW without decay for all
// weights, a rate that rises during the warmup share of the steps and then falls to 0, and
// gradients clipped to length clip.
func PaperCourse(c Course, rate, beta2 float32, warmup float64, cosine bool, clip float64) Course {
	c.Optimizer = Optimizer{}
	c.Optimizer.Rate, c.Optimizer.Beta1 = rate, 0.9
	c.Optimizer.Beta2, c.Optimizer.Eps = beta2, 1e-8
	c.Schedule = falling(warmup, cosine)
	c.Clip = clip
	return c
}

// PaperVocab is the draft vocabulary of the papers' heads: 32,000 tokens, or 0, for all of the
// target's, if it has fewer.
func PaperVocab(targetVocab int) int {
	const papers = 32000
	if targetVocab <= papers {
		return 0
	}
	return papers
}
