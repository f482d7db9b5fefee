package data

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// counting returns a set whose i-th token is i.
func counting(name string, n int, weight float64) *Set {
	s := &Set{Name: name, Weight: weight, wide: true}
	for i := range n {
		s.data = binary.LittleEndian.AppendUint32(s.data, uint32(i))
	}
	return s
}

// permute is a permutation for any size and key.
func TestPermute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, key := rapid.Uint64Range(1, 3000).Draw(t, "n"), rapid.Uint64().Draw(t, "key")
		seen := make([]bool, n)
		for x := range n {
			y := permute(x, n, key)
			if y >= n || seen[y] {
				t.Fatalf("%d goes to %d, again or outside of %d", x, y, n)
			}
			seen[y] = true
		}
	})
}

// An epoch reads every window of a set once, whatever the weights and the batches.
func TestEpochs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(1, 40).Draw(t, "length")
		var sets []*Set
		for i := range rapid.IntRange(1, 4).Draw(t, "sets") {
			sets = append(sets, counting(fmt.Sprint(i), rapid.IntRange(length+1, length*60).Draw(t, "tokens"),
				rapid.Float64Range(0.1, 3).Draw(t, "weight")))
		}
		m, err := NewMix(sets, length, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		starts := make([][]int, len(sets))
		const rows = 6000
		for r := range uint64(rows) {
			s, at := m.locate(r)
			starts[s] = append(starts[s], at)
		}
		total := 0.0
		for _, s := range sets {
			total += s.Weight
		}
		for i, s := range sets {
			if want := rows * s.Weight / total; math.Abs(float64(len(starts[i]))-want) > 5 {
				t.Errorf("%d rows of set %d, want about %.1f", len(starts[i]), i, want)
			}
			windows := s.Len() / length
			for e := 0; (e+1)*windows <= len(starts[i]); e++ {
				epoch := slices.Clone(starts[i][e*windows : (e+1)*windows])
				slices.Sort(epoch)
				for j := 1; j < len(epoch); j++ {
					if d := epoch[j] - epoch[j-1]; d < min(length, s.Len()%length+length) && d < length {
						t.Fatalf("set %d, epoch %d: windows at %d and %d overlap", i, e, epoch[j-1], epoch[j])
					}
				}
			}
		}
		for name, e := range m.Epochs(rows) {
			for i, s := range sets {
				if s.Name == name && math.Abs(e-float64(len(starts[i])*length)/float64(s.Len())) > 1e-9 {
					t.Errorf("set %s read %g times, by its rows %d·%d of %d", name, e, len(starts[i]), length, s.Len())
				}
			}
		}
	})
}

// A row depends only on its number. Rows follow the stream, which starts again after its end.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(1, 20).Draw(t, "length")
		n := rapid.IntRange(length+1, 500).Draw(t, "tokens")
		seed := rapid.Uint64().Draw(t, "seed")
		mix := func() *Mix {
			m, err := NewMix([]*Set{counting("a", n, 1), counting("b", n, 0), counting("c", n, 2)}, length, seed)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		a, b := mix(), mix()
		step, rows := rapid.IntRange(0, 1<<30).Draw(t, "step"), rapid.IntRange(1, 8).Draw(t, "rows")
		batch := make([]int32, rows*(length+1))
		a.Batch(step, rows, batch)
		row := make([]int32, length+1)
		for i := rows - 1; i >= 0; i-- {
			b.Row(uint64(step)*uint64(rows)+uint64(i), row)
			if !slices.Equal(row, batch[i*(length+1):(i+1)*(length+1)]) {
				t.Fatalf("row %d of step %d differs on its own", i, step)
			}
			for j := 1; j <= length; j++ {
				if row[j] != (row[j-1]+1)%int32(n) {
					t.Fatalf("row %v does not follow the stream of %d", row, n)
				}
			}
		}
		if a.Fingerprint() != b.Fingerprint() {
			t.Fatal("the same mix has two fingerprints")
		}
		of := map[string]float64{}
		for r := range uint64(1000) {
			of[a.Source(r)]++
		}
		for name, epochs := range a.Epochs(1000) {
			if got := of[name] * float64(length) / float64(n); math.Abs(got-epochs) > 1e-9*epochs {
				t.Fatalf("%g rows are of source %s, which has been read %g times", of[name], name, epochs)
			}
		}
	})
}

func TestMixErrors(t *testing.T) {
	for name, f := range map[string]func() (*Mix, error){
		"no set":     func() (*Mix, error) { return NewMix(nil, 8, 0) },
		"no weight":  func() (*Mix, error) { return NewMix([]*Set{counting("a", 99, 0)}, 8, 0) },
		"too short":  func() (*Mix, error) { return NewMix([]*Set{counting("a", 8, 1)}, 8, 0) },
		"length":     func() (*Mix, error) { return NewMix([]*Set{counting("a", 8, 1)}, 0, 0) },
		"bad weight": func() (*Mix, error) { return NewMix([]*Set{counting("a", 99, math.NaN())}, 8, 0) },
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

// Validation windows are adjacent.
func TestWindows(t *testing.T) {
	s := counting("a", 23, 1)
	if n := s.Windows(5); n != 4 {
		t.Fatalf("%d windows, want 4", n)
	}
	row := make([]int32, 6)
	for i := range 4 {
		s.Window(i, row)
		if row[0] != int32(5*i) || row[5] != int32(5*i+5) {
			t.Errorf("window %d is %v", i, row)
		}
	}
}
