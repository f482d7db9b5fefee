package grow

import (
	"fmt"

	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/tree"
)

// DynaTree is the draft tree of *DynaTree: Confidence-Aware Adaptive Tree Speculative Decoding*:
// its breadth follows the draft model's confidence, its depth follows the probability of each path,
// and history adapts both. The rules are those of the paper's text (§3.3, Algorithm 1). Depth 0 is
// that of tokens that follow the last committed one, like the paper's root. Deviations:
//
//   - The paper drafts one token at depth 0. Here as many are drafted there as anywhere else;
//     b-root=1 gives the paper's tree.
//   - A level is computed in one pass, the most probable nodes first if the budget runs out.
//     Otherwise the tree is the same.
//   - The paper's acceptance is a fraction of the drafted tokens. Here it is measured along the path:
//     other branches are meant to be rejected. adapt=false switches the adaptation off.
type DynaTree struct {
	TauH    float32 `draft:"tau-h" help:"a node whose best child has at least this probability gets b-min children (tau-l to 1)"`
	TauL    float32 `draft:"tau-l" help:"a node whose best child has less than this probability gets b-max children (0 to tau-h)"`
	BRoot   int     `draft:"b-root" help:"children of the last committed token (0 to 64); 0: like any other node"`
	BMin    int     `draft:"b-min" help:"children of a node where the draft model is confident (1 or more)"`
	BMid    int     `draft:"b-mid" help:"children of a node between tau-l and tau-h (b-min or more)"`
	BMax    int     `draft:"b-max" help:"children of a node where the draft model is uncertain (b-mid to 64)"`
	D0      int     `draft:"d0" help:"depth from which only paths above rho-deep grow (1 to d-max)"`
	DMax    int     `draft:"d-max" help:"maximum depth, from 0 for the first drafted token (d0 to 4094)"`
	RhoStop float32 `draft:"rho-stop" help:"minimum probability of a path to be expanded (0 to rho-deep)"`
	RhoDeep float32 `draft:"rho-deep" help:"minimum probability of a path to grow beyond d0 (rho-stop to 1)"`
	Tau     float32 `draft:"tau" help:"leaves below this probability are not verified (0 or more, below 1)"`
	NMax    int     `draft:"n-max" help:"maximum nodes, root included (2 to 4096)"`
	Prune   bool    `draft:"prune" help:"drop leaves below tau; false: keep them, but do not expand them"`

	Adapt  bool    `draft:"adapt" help:"move d0, tau-h and tau-l with the acceptance, after every round"`
	Window int     `draft:"window" help:"rounds of the mean acceptance (1 to 10000)"`
	Target float32 `draft:"target" help:"acceptance to aim at: accepted depth over drafted depth (0 to 1)"`
	EtaD   float32 `draft:"eta-d" help:"step of d0 for each unit of acceptance above target (0 to 4096)"`
	EtaH   float32 `draft:"eta-h" help:"step of tau-h, downwards (0 to 4096)"`
	EtaL   float32 `draft:"eta-l" help:"step of tau-l, downwards (0 to 4096)"`

	Model string `draft:"model" help:"GGUF file or Hugging Face folder to draft with; empty: what the model was opened with"`
}

// DefaultDynaTree returns the options of the paper's run on WikiText-2 (its appendix A). The text
// does not give tau, rho-stop, rho-deep, the window, the target and the steps: they come from that
// run too, in which d0 moved by whole steps.
func DefaultDynaTree() DynaTree {
	return DynaTree{
		TauH: 0.9, TauL: 0.4, BMin: 1, BMid: 2, BMax: 3, D0: 5, DMax: 8, RhoStop: 0.1, RhoDeep: 0.5, Tau: 0.05,
		NMax: 256, Prune: true,
		Adapt: true, Window: 10, Target: 0.7, EtaD: 1, EtaH: 0.05, EtaL: 0.05,
	}
}

func (o *DynaTree) limits() (limits, error) {
	fail := func(format string, args ...any) (limits, error) {
		return limits{}, fmt.Errorf(format, args...)
	}
	switch {
	case !(0 <= o.TauL && o.TauL <= o.TauH && o.TauH <= 1):
		return fail("tau-l is %g and tau-h %g: want 0 ≤ tau-l ≤ tau-h ≤ 1", o.TauL, o.TauH)
	case !(1 <= o.BMin && o.BMin <= o.BMid && o.BMid <= o.BMax && o.BMax <= maxBreadth):
		return fail("b-min, b-mid and b-max are %d, %d and %d: want 1 ≤ b-min ≤ b-mid ≤ b-max ≤ %d", o.BMin, o.BMid,
			o.BMax, maxBreadth)
	case !(1 <= o.D0 && o.D0 <= o.DMax && o.DMax < maxNodes-1):
		return fail("d0 is %d and d-max %d: want 1 ≤ d0 ≤ d-max < %d", o.D0, o.DMax, maxNodes-1)
	case !(0 <= o.RhoStop && o.RhoStop <= o.RhoDeep && o.RhoDeep <= 1):
		return fail("rho-stop is %g and rho-deep %g: want 0 ≤ rho-stop ≤ rho-deep ≤ 1", o.RhoStop, o.RhoDeep)
	case !(o.Tau >= 0 && o.Tau < 1):
		return fail("tau is %g: want 0 or more, below 1", o.Tau)
	}
	return limits{o.NMax, o.DMax + 1, max(o.BMax, o.BRoot)}, option.Check(o)
}

// adapted has a sequence's parameters as adapted by history.
type adapted struct {
	d0, tauH, tauL float32
	window         []float32 // acceptance of the last rounds, a ring
	rounds         int
}

func (o *DynaTree) begin(s *state) {
	s.adapted = adapted{d0: float32(o.D0), tauH: o.TauH, tauL: o.TauL}
}

// choose applies the gate of §3.3: d(u) < D_max, p(u) ≥ ρ_stop, and d(u) < D_0 or p(u) > ρ_deep; and
// that of algorithm 1, line 14: p(u) ≥ τ. The paper's d(u) is one less than the depth in the tree,
// whose root is committed.
func (o *DynaTree) choose(s *state) {
	least, deep := logOf(max(o.RhoStop, o.Tau)), logOf(o.RhoDeep)
	s.level(func(s *state, u int) bool {
		return s.path[u] >= least && (float32(s.tree.Depth[u]-1) < s.adapted.d0 || s.path[u] > deep)
	}, o.BMin)
}

// breadth is B(u) of §3.3.
func (o *DynaTree) breadth(s *state, node int32, confidence float32) int {
	switch {
	case node == 0 && o.BRoot > 0:
		return o.BRoot
	case confidence >= s.adapted.tauH:
		return o.BMin
	case confidence < s.adapted.tauL:
		return o.BMax
	}
	return o.BMid
}

func (o *DynaTree) floor() float32 {
	if o.Prune {
		return logOf(o.Tau)
	}
	return negInf
}

// learn is the historical adjustment of §3.3 and ADJUST of algorithm 1: a proportional step after
// every round, by the mean acceptance of the last W rounds. The paper's "fraction of drafted tokens
// committed" is measured along the path: a tree's other branches are meant to be rejected. More
// acceptance makes trees deeper and, through lower thresholds, narrower.
func (o *DynaTree) learn(s *state, verified *tree.Tree, nodes []int32) {
	a := &s.adapted
	if !o.Adapt {
		return
	}
	accepted, depth := s.judge(verified, nodes)
	if depth < 1 {
		return
	}
	rate := float32(accepted) / float32(depth)
	if len(a.window) < o.Window {
		a.window = append(a.window, rate)
	} else {
		a.window[a.rounds%o.Window] = rate
	}
	a.rounds++
	mean := float32(0)
	for _, r := range a.window {
		mean += r
	}
	over := mean/float32(len(a.window)) - o.Target
	a.d0 = clip(a.d0+o.EtaD*over, 1, float32(max(o.DMax-1, 1)))
	a.tauH = clip(a.tauH-o.EtaH*over, 0, 1)
	a.tauL = clip(a.tauL-o.EtaL*over, 0, a.tauH)
}

func clip(x, low, high float32) float32 { return min(max(x, low), high) }
