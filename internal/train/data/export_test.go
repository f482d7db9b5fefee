package data

// Epochs returns how often each set, by name, has been read after a number of rows.
func (m *Mix) Epochs(rows uint64) map[string]float64 {
	e := map[string]float64{}
	for i, s := range m.sets {
		n := rows / cycleRows * m.share[i]
		for _, c := range m.slots[:rows%cycleRows] {
			if int(c.set) == i {
				n++
			}
		}
		e[s.Name] += float64(n) * float64(m.length) / float64(s.Len())
	}
	return e
}
