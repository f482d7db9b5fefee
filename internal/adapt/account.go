// What learning may cost.

package adapt

// Account says how much decoding time learning may cost, and how much it did. All are seconds.
//
// Learning may begin a task while Lost is below Allowed. So Lost exceeds Allowed by the cost of one
// task at most.
type Account struct {
	Decoding float64 `json:"decoding"` // time spent decoding
	Allowed  float64 `json:"allowed"`  // decoding time that learning may cost
	Lost     float64 `json:"lost"`     // decoding time that learning did cost
}

// decoded takes in the time that a query took to decode. gain is that of the head in use over the
// first one.
func (c *Account) decoded(seconds, gain float64, t *Tuning) {
	c.Decoding += seconds
	c.Allowed += seconds * (t.Share + t.Reinvest*max(gain, 0))
}

// left is the time that learning may still cost.
func (c *Account) left() float64 { return c.Allowed - c.Lost }
