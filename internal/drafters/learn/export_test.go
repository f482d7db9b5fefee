package learn

// Bytes returns the memory that a collector keeps of its sequence.
func (c *Collector) Bytes() int { return c.example.Bytes() }
