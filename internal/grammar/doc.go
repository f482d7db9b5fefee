// Package grammar constrains generated text: GBNF grammars, regular expressions and JSON schemas
// become one automaton, and the automaton says at each place of a text which tokens of a vocabulary
// may follow.
//
// The automaton is a pushdown automaton over the bytes of the text. It is not deterministic: a
// State is a set of configurations, each a node and a stack of return nodes. Stacks are immutable
// lists that share their tails, so a State is copied by copying a pointer. Transitions and masks
// are computed when they are first asked for, and kept.
//
// Parts of the automaton from which no text can be completed are removed when it is compiled. So
// every allowed byte leads to a state from which the text can end.
//
// Input: a grammar or a schema and a model's vocabulary. Output: masks of the tokens that may follow a
// text or a node of a draft tree. Read state.go first, then constraint.go and path.go, which decoding
// uses. gbnf.go, regex.go and schema.go compile the three languages to expressions, expr.go, and
// compile.go makes the automaton of those.
package grammar
