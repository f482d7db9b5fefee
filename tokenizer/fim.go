package tokenizer

// FIM are the tokens around the parts of a file in fill-in-the-middle prompts: what comes before
// the gap, what comes after it, and what fills it. File begins a further file; -1 where the model
// has no such token.
type FIM struct{ Prefix, Suffix, Middle, File int32 }

// FIM returns those tokens. ok is false where the model has not all of the first three.
func (t *Tokenizer) FIM() (f FIM, ok bool) {
	find := func(names []string) int32 {
		for _, name := range names {
			if id, ok := t.Find(name); ok && t.IsSpecial(id) {
				return id
			}
		}
		return -1
	}
	n := len(fimNames) / 3
	f = FIM{Prefix: find(fimNames[:n]), Suffix: find(fimNames[n : 2*n]), Middle: find(fimNames[2*n:]),
		File: find([]string{"<|file_sep|>", "<file_sep>"})}
	return f, f.Prefix >= 0 && f.Suffix >= 0 && f.Middle >= 0
}
