package grove

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/models"
)

func openLearning(t *testing.T, dir string) *Model {
	t.Helper()
	m, err := OpenGGUF("embedded", models.Target(), Options{HeadGGUF: models.Heads(),
		DraftGGUF: models.Draft(), Learned: dir})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What drafters learned is restored when the model is opened again, including that of wrapped
// drafters and of parts. The text stays the same.
func TestLearnedIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "learned")
	texts := []string{
		"lookup", "best-first+text", "jetspec:tree=ddtree+text+adapt", "specblock+text",
		"merge:mode=spliced,lookup+(eagle3:tree=best-first+text)",
	}
	generate := func(m *Model, text string) []int32 {
		r, err := Collect(m.Generate(context.Background(), "func main() {", Request{MaxTokens: 40, Drafter: text,
			Uncontrolled: true}))
		if err != nil {
			t.Fatal(err)
		}
		return r.Tokens
	}
	m := openLearning(t, dir)
	plain := generate(m, "plain")
	was := map[string]drafterLearned{}
	for _, text := range texts {
		d, name, err := m.drafting.use(m, text)
		if err != nil || name != text {
			t.Fatal(name, err)
		}
		fresh := slices.Concat(d.Learned()...)
		if !slices.Equal(generate(m, text), plain) {
			t.Errorf("%s: another text", text)
		}
		if strings.Contains(text, "text") && slices.Equal(slices.Concat(d.Learned()...), fresh) {
			t.Errorf("%s learned nothing", text)
		}
		was[text] = drafterLearned{d.Learned(), m.drafting.control.Learned(text)}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = openLearning(t, dir)
	for _, text := range texts {
		d, _, err := m.drafting.use(m, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := (drafterLearned{d.Learned(), m.drafting.control.Learned(text)}); !reflect.DeepEqual(got, was[text]) {
			t.Errorf("%s: what it learned is lost", text)
		}
		if !slices.Equal(generate(m, text), plain) {
			t.Errorf("%s, with what it learned: another text", text)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	files, err := filepath.Glob(filepath.Join(dir, "drafting-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	for name, content := range map[string]string{
		"no JSON":        `{"format": 1, "drafters": {`,
		"another length": `{"format": 1, "drafters": {"best-first+text": {"weights": [[1]], "counts": []}}}`,
	} {
		if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := OpenGGUF("embedded", models.Target(), Options{HeadGGUF: models.Heads(),
			DraftGGUF: models.Draft(), Learned: dir})
		if err == nil {
			_, _, err = m.drafting.use(m, "best-first+text")
			defer m.Close()
		}
		var option *OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), files[0]) ||
			!strings.Contains(err.Error(), "delete the file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What drafters learn is saved while the model is open, now and then, so that a process that is killed loses little.
func TestLearnedIsSavedMeanwhile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "learned")
	m := openLearning(t, dir)
	defer m.Close()
	generate := func(m *Model) {
		if _, err := Collect(m.Generate(context.Background(), "func main() {", Request{MaxTokens: 40,
			Drafter: "best-first+text", Uncontrolled: true})); err != nil {
			t.Fatal(err)
		}
	}
	generate(m)
	if m.drafting.learned.due() {
		t.Error("it is saved at once")
	}
	m.drafting.learned.saved.Store(1)
	generate(m)
	files := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "drafting-*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for end := time.Now().Add(time.Minute); len(files()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not saved")
		}
	}
	other := openLearning(t, dir)
	defer other.Close()
	d, _, err := other.drafting.use(other, "best-first+text")
	if err != nil {
		t.Fatal(err)
	}
	mine, _, err := m.drafting.use(m, "best-first+text")
	if err != nil || !reflect.DeepEqual(d.Learned(), mine.Learned()) {
		t.Errorf("another model goes on from %v, this one from %v, %v", d.Learned(), mine.Learned(), err)
	}
}

// +adapt makes a head learn without a flag, as a part of a merge too; a drafter without a head refuses it.
func TestAdaptModifier(t *testing.T) {
	m := openLearning(t, "")
	defer m.Close()
	for _, text := range []string{"jetspec+adapt", "eagle3+text+adapt", "merge:lookup+(jetspec+adapt)",
		"specblock+freq:size=64+adapt"} {
		if d, err := m.drafter(text); err != nil || adapt.Of(d) == nil && !strings.HasPrefix(text, "merge") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if len(m.drafting.adapters) != 3 { // one for each head
		t.Errorf("%d heads learn, want 3", len(m.drafting.adapters))
	}
	if a, err := m.adapterOf("jetspec:tree=chain+adapt"); err != nil || a == nil {
		t.Error(err)
	}
	if d, err := m.drafter("jetspec"); err != nil || adapt.Of(d) != nil {
		t.Errorf("a drafter without the modifier learns: %v", err)
	}
	for text, want := range map[string]string{"lookup+adapt": "takes no modifiers", "best-first+adapt": "takes +text"} {
		if _, err := m.drafter(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	target := m.target()
	target.Adapt = nil
	if target.Model != nil {
		if _, err := registry.New("jetspec+adapt", target); err == nil {
			t.Error("a head learns where none can")
		}
	}
}
