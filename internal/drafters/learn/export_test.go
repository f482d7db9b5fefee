package learn

// Bytes is the memory that a collector holds of its sequence.
func (c *Collector) Bytes() int { return c.example.Bytes() }
