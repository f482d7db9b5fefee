package grammar

import (
	"fmt"
	"strings"
)

// Random makes a grammar of a few rules over the letters of RandomVocab, for tests. intn returns a
// number of 0 to n-1. Rules call later rules, and themselves between letters.
func Random(intn func(n int) int) string {
	pick := func(list ...string) string { return list[intn(len(list))] }
	names := []string{"root", "r1", "r2", "r3"}[:1+intn(4)]
	var body func(rule, depth int) string
	atom := func(rule, depth int) string {
		switch intn(7) {
		case 0, 1:
			return `"` + pick("a", "ab", "c", "é", "語", "da", "abcdabcd") + `"`
		case 2:
			return pick("[a-c]", "[^ab]", "[é-語]", ".")
		case 3:
			if depth < 2 {
				return "(" + body(rule, depth+1) + ")"
			}
		case 4:
			if later := names[rule+1:]; len(later) > 0 {
				return pick(later...)
			}
		}
		return `"b"`
	}
	body = func(rule, depth int) string {
		var alternatives []string
		for range 1 + intn(3) {
			parts := []string{`""`}
			for range intn(4) {
				parts = append(parts, atom(rule, depth)+pick("", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}"))
			}
			if depth == 0 && intn(4) == 0 {
				parts = append(parts, `"d"`, names[rule], pick(`"c"`, `""`))
			}
			alternatives = append(alternatives, strings.Join(parts, " "))
		}
		return strings.Join(alternatives, " | ")
	}
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "%s ::= %s\n", name, body(i, 0))
	}
	return b.String()
}

// RandomVocab makes texts of n tokens: the letters and bytes that Random's grammars need, as far as
// there are so many tokens, and pieces of such texts, some of which are cut within a character.
func RandomVocab(n int, intn func(n int) int) [][]byte {
	letters := []rune("abcdé語")
	pieces := [][]byte{nil, {0xc3}, {0xa9}}
	for _, c := range letters {
		pieces = append(pieces, []byte(string(c)))
	}
	for len(pieces) < n {
		var text []rune
		for range 1 + intn(5) {
			text = append(text, letters[intn(len(letters))])
		}
		pieces = append(pieces, []byte(string(text))[intn(2):])
	}
	return pieces[:n]
}

// Sample writes a random text of the grammar, for tests. After most bytes it takes a shortest way to an end.
func (g *Grammar) Sample(intn func(n int) int, most int) (string, error) {
	left := g.distances()
	s, err := g.Start()
	var text []byte
	for err == nil {
		if s.accepting && (len(s.configs) == 0 || len(text) > most || intn(4) == 0) {
			return string(text), nil
		}
		var allowed []byte
		nearest := 1 << 30
		for class, b := range g.example {
			next, err := g.step(s, b)
			if err != nil {
				return "", err
			}
			if next == dead {
				continue
			}
			if len(text) > most {
				n := next.distance(left)
				if n > nearest {
					continue
				}
				if n < nearest {
					nearest, allowed = n, allowed[:0]
				}
			}
			last := int(b)
			for last < 255 && int(g.class[last+1]) == class {
				last++
			}
			allowed = append(allowed, b+byte(intn(last-int(b)+1)))
		}
		b := allowed[intn(len(allowed))]
		text = append(text, b)
		s, err = g.step(s, b)
	}
	return "", err
}

// distances are the bytes from each node to the end of its rule, at least.
func (g *Grammar) distances() []int {
	const far = 1 << 20
	left := make([]int, len(g.nodes))
	for i := range left {
		left[i] = far
	}
	left[end] = 0
	for changed := true; changed; {
		changed = false
		for i := range g.nodes {
			n, best := &g.nodes[i], left[i]
			for _, e := range n.bytes {
				best = min(best, 1+left[e.to])
			}
			for _, to := range n.empty {
				best = min(best, left[to])
			}
			if n.call != none {
				best = min(best, left[g.start[n.call]]+left[n.ret])
			}
			changed = changed || best < left[i]
			left[i] = best
		}
	}
	return left
}

// distance is the bytes to the end of the text, at least.
func (s *State) distance(left []int) int {
	nearest := 1 << 30
	if s.accepting {
		nearest = 0
	}
	for _, c := range s.configs {
		n := left[c.node]
		for f := c.stack; f != nil; f = f.up {
			n += left[f.node]
		}
		nearest = min(nearest, n)
	}
	return nearest
}
