package train

import (
	"encoding/json"
	"testing"

	"github.com/grovellm/grove/internal/model"
)

// A later version's shape with additional fields has the same fingerprint as before if none of them
// is used; a field that is used changes it.
func TestFingerprintOfLaterVersion(t *testing.T) {
	type part struct{ Heads, Dim int }
	type shape struct {
		Arch    string
		Layers  int
		Windows []bool
		Part    part
	}
	type later struct {
		Arch    string
		Kind    string
		Layers  int
		Windows []bool
		Skips   []bool
		Part    struct {
			part
			Gate  bool
			Scale float64
		}
		Other *part
		More  part
	}
	fingerprint := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var shape any
		if err := json.Unmarshal(b, &shape); err != nil {
			t.Fatal(err)
		}
		return Fingerprint(withoutZeros(shape))
	}
	was := shape{Arch: "llama", Layers: 3, Windows: []bool{false, true}, Part: part{2, 16}}
	now := later{Arch: "llama", Layers: 3, Windows: []bool{false, true}}
	now.Part.part = was.Part
	want := fingerprint(was)
	if got := fingerprint(now); got != want {
		t.Errorf("fingerprint is %s, want %s", got, want)
	}
	for name, change := range map[string]func(s *later){
		"Kind":    func(s *later) { s.Kind = "x" },
		"Windows": func(s *later) { s.Windows = []bool{false, false} },
		"Skips":   func(s *later) { s.Skips = []bool{false} },
		"Gate":    func(s *later) { s.Part.Gate = true },
		"More":    func(s *later) { s.More.Dim = 1 },
	} {
		changed := now
		change(&changed)
		if fingerprint(changed) == want {
			t.Errorf("another %s changes nothing", name)
		}
	}
}

// If the last layer is also one that a head reads, it is stored once.
func TestFeatureBytes(t *testing.T) {
	m := &model.Model{Network: model.Network{Config: model.Config{Layers: 3, Hidden: 10}}}
	for want, layers := range map[int64][]int{280: {3}, 560: {1, 3}, 840: {1, 2}} {
		if f := (&Frozen{Model: m, layers: layers}); f.featureBytes(7) != want {
			t.Errorf("7 tokens of layers %v and the last take %d bytes, want %d", layers, f.featureBytes(7), want)
		}
	}
}
