package grammar

// Sample writes a random text of the grammar, for tests. After most bytes, it looks for a shortest way to an end.
func (g *Grammar) Sample(intn func(n int) int, most int) (string, error) {
	left := g.distances()
	s, err := g.Start()
	var text []byte
	for err == nil {
		if s.accepting && (len(s.configs) == 0 || len(text) > most || intn(4) == 0) {
			return string(text), nil
		}
		if len(text) > most+maxItems { // shortest ways do not count repetitions, so they may lead in a circle
			return "", errAmbiguous
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

// distances returns the least number of bytes from each node to the end of its rule.
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

// distance returns the least number of bytes to the end of the text.
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
