package mtp_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// FastMTP's layers for Qwen 3, Qwen 3.5 and Qwen3-Next, as saved by vLLM's speculators package, have that package's
// logits in every row of a text, and after it draft what it drafts (testdata/fastmtp.py). The text generated with
// them is the same as without. The layer for Qwen 3 comes back from the files that grove makes of it.
func TestFastMTP(t *testing.T) {
	for name, target := range map[string]string{"tiny-qwen3": "fastmtp/tiny-qwen3", "tiny-qwen35-mtp": "tiny-qwen35-mtp",
		"tiny-qwen3next-mtp": "tiny-qwen3next-mtp"} {
		m := Must(model.Open(filepath.Join("testdata", target), model.Options{Threads: 2}))(t)
		defer m.Close()
		dir := filepath.Join("testdata", "fastmtp", name+"-head")
		asSpeculators(t, dir, dir, m)
		h := Must(headfile.Read(registry.Head{Name: dir}, (&mtp.Config{}).Kind()))(t)
		defer h.Close()
		file, folder := filepath.Join(t.TempDir(), "head.gguf"), filepath.Join(t.TempDir(), "folder")
		noFile := headfile.WriteGGUF(file, "", h.Shape, h.Weights, nil, nil, h.Weights[0].Type)
		c := m.Config
		c.Name = "org/target"
		noFolder := headfile.WriteSpeculators(folder, h.Shape, h.Weights, nil, c)
		if name != "tiny-qwen3" {
			if noFile == nil || !strings.Contains(noFile.Error(), "use its folder as it is") {
				t.Errorf("%s: a GGUF file: %v", name, noFile)
			}
			if noFolder == nil || !strings.Contains(noFolder.Error(), "speculators have no ") {
				t.Errorf("%s: a folder for speculators: %v", name, noFolder)
			}
			continue
		}
		if noFile != nil || noFolder != nil {
			t.Fatal(noFile, noFolder)
		}
		asSpeculators(t, dir, file, m)
		asSpeculators(t, dir, folder, m)
		if got, want := tensorsIn(t, folder), tensorsIn(t, dir); got != want {
			t.Errorf("written with the tensors\n%s\nwas\n%s", got, want)
		}
	}
}

// tensorsIn lists the names and shapes of those of a folder's tensors that grove reads.
func tensorsIn(t *testing.T, dir string) string {
	t.Helper()
	f := Must(safetensors.OpenFolder(dir))(t)
	defer f.Close()
	var list []string
	for _, x := range f.Tensors {
		if !strings.HasPrefix(x.Name, "verifier_") {
			list = append(list, fmt.Sprintf("%s %v", x.Name, x.Shape))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// asSpeculators compares the head at path with the golden in dir.
func asSpeculators(t *testing.T, dir, path string, m *model.Model) {
	t.Helper()
	var want struct {
		Text, Tokens []int32
		First        [][]float32
		LogProbs     []float64 `json:"log_probs"`
	}
	if err := json.Unmarshal(Must(os.ReadFile(filepath.Join(dir, "logits.json")))(t), &want); err != nil {
		t.Fatal(err)
	}
	n := Must(mtp.Open(registry.Head{Name: path}, As(m)))(t)
	text := want.Text[:len(want.Text)-1]
	p, c := m.NewPass(), m.NewCache()
	defer c.Free()
	if err := p.Run(t.Context(), []model.Rows{{Cache: c, Tree: tree.Chain(text)}}, n.Taps); err != nil {
		t.Fatal(err)
	}

	rows := len(want.First)
	e := nn.NewExec(m.Pool())
	pages := n.Pages()
	cache := pages.NewCache()
	defer cache.Free()
	var forest nn.Forest
	entries := tree.Chain(want.Text[1 : rows+1])
	forest.Add(cache, entries, 0)
	cache.Reserve(0, rows)
	taps := nn.NewMat(rows, n.Hidden)
	g, x := nn.NewMat(rows, n.Hidden), nn.NewMat(rows, n.Hidden)
	for i := range rows {
		copy(taps.Row(i), p.Tap(0, 0, i))
	}
	var bufs eagle.Buffers
	n.Features(e, taps, g, &bufs)
	n.Run(e, &forest, entries.Token, g, x, &bufs)
	logits := nn.NewMat(rows, n.Head.W.Out())
	e.Linear(n.Output(x), nn.Proj{Linear: &n.Head, Dst: logits})
	for i, row := range want.First {
		for k, v := range row {
			if got := logits.Row(i)[k]; math.Abs(float64(got-v)) > 1e-4 {
				t.Fatalf("%s: logit %d of row %d is %g, want %g", path, k, i, got, v)
			}
		}
	}

	d := newDrafter(t, n, &grow.Linear{K: len(want.Tokens)}, m)
	s := Begin(t, d, draft.Options{}, 1)
	defer s.Close()
	prompt := s.Prompt(text, m.Config.Hidden, true)
	prompt.Pass = p
	Commit(t, d, prompt)
	s.Root = want.Text[len(text)]
	q := s.Request(len(want.Tokens)+1, len(want.Tokens), nil)
	Propose(t, d, q)
	checkChain(t, path, q.Tree, want.Tokens, want.LogProbs)

	prompts := [][]int32{want.Text}
	plain, _ := Generate(t, m, nil, speculate.Options{}, sample.Params{}, prompts)
	shape := grow.DefaultDynamic()
	out, _ := Generate(t, m, newDrafter(t, n, &shape, m), speculate.Options{Budget: 24, Uncontrolled: true},
		sample.Params{}, prompts)
	if !slices.Equal(out[0], plain[0]) {
		t.Errorf("%s: the text is %v with drafts, want %v", path, out[0], plain[0])
	}
}
