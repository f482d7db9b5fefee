// What learning may cost.

package adapt

// Account says how much decoding time learning may cost, and how much it did. All are seconds.
//
// A judgement may begin while Lost is below Allowed, an update where what the last one cost is
// left; the first one's is guessed. So Lost exceeds Allowed by what a task costs more than the one before, or than
// was guessed.
type Account struct {
	Decoding float64 `json:"decoding"` // time spent decoding
	Allowed  float64 `json:"allowed"`  // decoding time that learning may cost
	Lost     float64 `json:"lost"`     // decoding time that learning did cost
	Price    float64 `json:"price"`    // of this, what the last update cost, with its judgement; 0: unknown
}

// leastPrice is that of an update that slows nothing, on a machine with processors to spare.
const leastPrice = 1e-9

// decoded takes in the time that a query took to decode. gain is that of the head in use over the first one.
func (c *Account) decoded(seconds, gain float64, t *Tuning) {
	c.Decoding += seconds
	c.Allowed += seconds * (t.Share + t.Reinvest*max(gain, 0))
}

// left is the time that learning may still cost.
func (c *Account) left() float64 { return c.Allowed - c.Lost }
