// Two ways of drafting that both pay: which pays more.

package speculate

// rivals are drafting by a drafter's passes (0) and by the text alone (1), as they were lately. The better is asked, and now and then the
// other, less often the longer it is not the better. What one text found out the next begins with.
//
// Whoever drafts by passes knows the text too, so that without them no more is accepted: there is only their time to be saved. Where that
// is little, the text alone is not asked.
type rivals struct {
	pace     [2]pace
	waited   int // rounds since the other was asked
	interval int // rounds after which it is
	asked    bool
}

// pace is tokens of late rounds and the time they took, in times of a plain token; drafting is a part of it.
type pace struct{ tokens, time, drafting float32 }

const (
	paceMemory = 16  // rounds
	littleTime = 0.1 // of a round

	firstRival = 8
	lastRival  = 256
)

func (p *pace) add(o pace) {
	p.tokens += o.tokens - p.tokens/paceMemory
	p.time += max(o.time, 0) - p.time/paceMemory
	p.drafting += max(o.drafting, 0) - p.drafting/paceMemory
}

// faster reports whether p is, of which there is something known.
func (p *pace) faster(o *pace) bool { return p.tokens*o.time > o.tokens*p.time }

// better is the number of the better way.
func (r *rivals) better() int {
	if r.pace[1].faster(&r.pace[0]) {
		return 1
	}
	return 0
}

// settled reports whether there is little to be saved.
func (r *rivals) settled() bool {
	p := &r.pace[0]
	return r.better() == 0 && p.drafting <= littleTime*p.time
}

// choose is the way to ask in a round in which both may be.
func (r *rivals) choose() int {
	way := r.better()
	r.waited++
	if r.asked = r.waited >= max(r.interval, firstRival); r.asked {
		r.waited = 0
		return 1 - way
	}
	return way
}

// learn takes what came of a round of one of the ways.
func (r *rivals) learn(way int, of pace) {
	r.pace[way].add(of)
	if !r.asked {
		return
	}
	r.asked = false
	if r.better() == way {
		r.interval = firstRival
	} else {
		r.interval = min(2*max(r.interval, firstRival), lastRival)
	}
}
