// The account: how much learning may cost.

package adapt

// Account has how much decoding time learning may cost, and how much it has cost. All are seconds.
//
// A judgement may begin while Lost is below Allowed, and an update if at least the cost of the last
// one is left; the first one's is guessed. So Lost exceeds Allowed at most by how much more a task costs than the one
// before, or than the guess.
type Account struct {
	Decoding float64 `json:"decoding"` // time spent decoding
	Allowed  float64 `json:"allowed"`  // decoding time that learning may cost
	Lost     float64 `json:"lost"`     // decoding time that learning has cost
	Price    float64 `json:"price"`    // the part of Lost due to the last update and its judgement; 0: unknown
}

// leastPrice is the price of an update that slows nothing, on a machine with spare processors.
const leastPrice = 1e-9

// decoded adds the time that a query took to decode. gain is that of the head in use over the first one.
func (c *Account) decoded(seconds, gain float64, t *Tuning) {
	c.Decoding += seconds
	c.Allowed += seconds * (t.Share + t.Reinvest*max(gain, 0))
}

// left returns the time that learning may still cost.
func (c *Account) left() float64 { return c.Allowed - c.Lost }
