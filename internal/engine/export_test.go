package engine

// Rests reports whether nothing is left to do.
func (e *Engine) Rests() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.working
}
