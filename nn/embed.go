package nn

// Table is a matrix whose rows are looked up one at a time: token embeddings, or a packed
// output head that is tied to them.
type Table interface {
	Row(dst []float32, i int) // widens row i into dst
}

// Embed writes the table's row of each token to the rows of dst.
func (e *Exec) Embed(t Table, tokens []int32, dst Mat) {
	if e.tape != nil && e.tape.embed(t, tokens, dst) {
		return
	}
	for i, id := range tokens {
		t.Row(dst.Row(i), int(id))
	}
}
