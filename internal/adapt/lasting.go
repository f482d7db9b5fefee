package adapt

// lasting estimates how much of what updates bring at once is there to stay. An update learns most of all from the texts just read, and the
// next ones, on which it is judged, are often like them; later updates undo some of it; and a small head is full some time. So the gains of
// updates one by one sum up to more than the head is in the end over the first.
//
// Both are measured at every judgement, and the share that lasts is the slope of the one on the other over the last of them, by least squares
// that begin at 1.
type lasting struct {
	Sum  float64   `json:"sum"`  // of the gains at once so far
	At   []float64 `json:"at"`   // what it was at the last judgements
	Over []float64 `json:"over"` // the gains over the first head there
}

const (
	lastingMemory = 24   // judgements
	lastingPrior  = .004 // what the beginning weighs: as much as 8 judgements along 8 % of gains
)

// judged takes what an update brought at once and what the head is now over the first.
func (l *lasting) judged(gain, over float64) {
	l.Sum += gain
	l.At, l.Over = append(l.At, l.Sum), append(l.Over, over)
	if n := len(l.At) - lastingMemory; n > 0 {
		l.At, l.Over = l.At[n:], l.Over[n:]
	}
}

// share is the part that lasts, from 0 to 1.
func (l *lasting) share() float64 {
	n := float64(len(l.At))
	if n == 0 {
		return 1
	}
	var x, y float64
	for i := range l.At {
		x, y = x+l.At[i]/n, y+l.Over[i]/n
	}
	xx, xy := lastingPrior, lastingPrior
	for i := range l.At {
		dx := l.At[i] - x
		xx, xy = xx+dx*dx, xy+dx*(l.Over[i]-y)
	}
	return min(max(xy/xx, 0), 1)
}
