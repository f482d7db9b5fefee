package tokenizer

// Infill returns a fill-in-the-middle prompt: after it the model writes what stands between prefix and suffix. It
// does not include the tokens that EncodeOptions.AddSpecial puts around a text. ok is false if the model has no
// fill-in-the-middle tokens.
func (t *Tokenizer) Infill(prefix, suffix string) (tokens []int32, ok bool) {
	n := len(fimNames) / 3
	marks := [3]int32{}
	for i := range marks {
		marks[i], ok = t.findSpecial(fimNames[i*n : (i+1)*n])
		if !ok {
			return nil, false
		}
	}
	tokens = t.appendTokens([]int32{marks[0]}, prefix, EncodeOptions{})
	tokens = t.appendTokens(append(tokens, marks[1]), suffix, EncodeOptions{})
	return append(tokens, marks[2]), true
}

// findSpecial finds the first special token of these names.
func (t *Tokenizer) findSpecial(names []string) (id int32, ok bool) {
	for _, name := range names {
		if id, ok := t.Find(name); ok && t.IsSpecial(id) {
			return id, true
		}
	}
	return none, false
}
