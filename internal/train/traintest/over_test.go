package traintest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	eaglehead "github.com/grovellm/grove/internal/drafters/eagle"
	falconhead "github.com/grovellm/grove/internal/drafters/falcon"
	jethead "github.com/grovellm/grove/internal/drafters/jet"
	_ "github.com/grovellm/grove/internal/drafters/lookup" // heads are compared with it
	mtphead "github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/drafters/registry"
	sparkhead "github.com/grovellm/grove/internal/drafters/spark"
	specblockhead "github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/eagle"
	"github.com/grovellm/grove/internal/train/falcon"
	"github.com/grovellm/grove/internal/train/jet"
	"github.com/grovellm/grove/internal/train/mtp"
	"github.com/grovellm/grove/internal/train/specblock"
	"github.com/grovellm/grove/internal/train/traintest"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// randomTarget returns a model of a shape with random weights.
func randomTarget(t testing.TB, s synth.Shape, typ tensor.Type) *model.Model {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: typ, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// tinyShapes returns some of synth's shapes that have little in common.
func tinyShapes(t *testing.T) (list []synth.Shape) {
	for _, name := range []string{"tiny-llama3", "tiny-qwen3", "tiny-gptneox", "tiny-gemma2", "tiny-longrope",
		"tiny-granite", "tiny-qwen3moe"} {
		s, err := synth.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// Every kind of head can be trained over a model of any architecture and type with the recipe for
// that model, opens as a head of the model, and drafts without changing its output.
func TestHeadsForAnyTarget(t *testing.T) {
	text := filepath.Join(t.TempDir(), "sums.txt")
	if err := os.WriteFile(text, []byte(traintest.Text(1, 300)), 0o666); err != nil {
		t.Fatal(err)
	}
	j := traintest.Job(t)
	kinds := []struct {
		drafter string
		train   func(j train.Job) error
		open    func(registry.Head, registry.Target) error
	}{
		{"eagle3", func(j train.Job) error {
			r := eagle.NewRecipe(3).For(j.Target)
			r.HeadText = traintest.HeadText()
			r.Steps = 2
			r.ValidateEvery = 2
			r.Places = 6
			r.TestSteps = 2
			r.Later = 3
			return j.TrainHead(context.Background(), "eagle3", &r)
		}, opens(eaglehead.Open)},
		{"jetspec", func(j train.Job) error {
			r := jet.NewRecipe(true).For(j.Target)
			r.HeadText = traintest.HeadText()
			r.Steps = 2
			r.ValidateEvery = 2
			r.Anchors = 4
			r.Block = 4
			r.ShortBlock = 4
			return j.TrainHead(context.Background(), "jetspec", &r)
		}, opens(jethead.Open)},
		{"falcon", func(j train.Job) error {
			r := falcon.NewRecipe().For(j.Target)
			r.HeadText = traintest.HeadText()
			r.Steps = 2
			r.ValidateEvery = 2
			r.Recurrent = j.Target.Config.Layers%2 == 0
			return j.TrainHead(context.Background(), "falcon", &r)
		}, opens(falconhead.Open)},
		{"mtp", func(j train.Job) error {
			r := eagle.NewRecipe(eaglehead.Native).For(j.Target)
			r.HeadText = traintest.HeadText()
			r.Steps = 2
			r.ValidateEvery = 2
			r.Places = 6
			r.TestSteps = 2
			r.Later = 3
			return j.TrainHead(context.Background(), "mtp", &mtp.Recipe{Recipe: r})
		}, opens(mtphead.Open)},
		{"specblock", func(j train.Job) error {
			r := specblock.NewRecipe().For(j.Target)
			r.HeadText = traintest.HeadText()
			r.Steps = 2
			r.ValidateEvery = 2
			r.Anchors = 4
			r.Ranks.Texts = 0
			return j.TrainHead(context.Background(), "specblock", &r)
		}, opens(specblockhead.Open)},
		{"dspark", func(j train.Job) error {
			r, err := jet.NewCorrectedRecipe(jet.DSpark).For(j.Target)
			if err != nil {
				return err
			}
			r.HeadText = traintest.HeadText()
			r.Steps = 2
			r.ValidateEvery = 2
			r.Anchors = 4
			r.Block = 4
			r.ShortBlock = 4
			return j.TrainHead(context.Background(), "dspark", &r)
		}, opens(sparkhead.Open)},
	}
	for i, s := range tinyShapes(t) {
		if testing.Short() && i > 2 {
			break
		}
		kind, typ := kinds[i%len(kinds)], []tensor.Type{tensor.Q8_0, tensor.F32, tensor.BF16, tensor.Q4_0}[i%4]
		t.Run(fmt.Sprint(s.Name, " ", typ, " ", kind.drafter), func(t *testing.T) {
			m := randomTarget(t, s, typ)
			own := train.Job{Dir: t.TempDir(), Sources: j.Sources, Threads: 1, SaveEvery: j.SaveEvery, Target: m}
			own, first, last := traintest.Watched(own, traintest.EveryStep)
			var notes []string
			own.Note = func(s string) { notes = append(notes, s) }
			if err := kind.train(own); err != nil {
				t.Fatal(err)
			}
			text := traintest.HeadText() // 18 tokens after each passage of the shorter texts
			want := text.Short.Texts*18 + text.Long.Texts*18 + text.Held.Texts*18
			if !strings.HasPrefix(notes[0], fmt.Sprintf("the target is to generate %d tokens: at least ", want)) {
				t.Errorf("the first note is %q, want %d tokens", notes[0], want)
			}
			if first.Step != 1 || last.Step != 2 || !(last.Loss > 0) || math.IsInf(last.Loss, 0) {
				t.Fatalf("steps %d to %d, loss %g", first.Step, last.Step, last.Loss)
			}
			head := registry.Head{Name: filepath.Join(own.Dir, kind.drafter, "model-q8_0.gguf")}
			if err := kind.open(head, drafttest.As(m)); err != nil {
				t.Fatal(err)
			}
			target := drafttest.As(m)
			target.Heads = []registry.Head{head}
			var texts [2][][]int32
			for i, name := range []string{"lookup", kind.drafter} {
				d, err := registry.New(name, target)
				if err != nil {
					t.Fatal(err)
				}
				texts[i], _ = drafttest.Generate(t, m, d, speculate.Options{Uncontrolled: true},
					sample.Params{Temperature: 0.7}, [][]int32{{1, 5, 9, 2}})
			}
			if !reflect.DeepEqual(texts[0], texts[1]) {
				t.Errorf("drafted by the head %v, from the prompt %v", texts[1], texts[0])
			}
			card, err := os.ReadFile(filepath.Join(own.Dir, kind.drafter, "card.md"))
			if err != nil || !strings.Contains(string(card), "architecture "+s.Arch) ||
				!strings.Contains(string(card), "| sums | ") {
				t.Errorf("the card: %v\n%s", err, card)
			}
		})
	}
}

// Heads over a target with experts are as wide as its states require, not as one expert. Its blocks cannot be copied.
func TestHeadsOverExpertsAreWide(t *testing.T) {
	for _, name := range []string{"tiny-qwen3moe", "tiny-qwen35moe", "tiny-qwen3next", "tiny-gpt-oss"} {
		s, err := synth.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		m := randomTarget(t, s, tensor.F32)
		for head, width := range map[string]int{
			"jet": jet.NewRecipe(true).For(m).FFN, "specblock": specblock.NewRecipe().For(m).FFN,
		} {
			if width < m.Config.Hidden || width%32 != 0 {
				t.Errorf("%s over %s: MLPs of width %d, where states have %d", head, name, width, m.Config.Hidden)
			}
		}
	}
}

// A head's warm start ends when it is interrupted, and is not repeated for a head that has a checkpoint.
func TestBeginningOnce(t *testing.T) {
	shape, err := synth.Lookup("tiny-llama3")
	if err != nil {
		t.Fatal(err)
	}
	job := traintest.Job(t)
	j := train.Job{Dir: t.TempDir(), Sources: job.Sources, Threads: 1, SaveEvery: job.SaveEvery,
		Target: randomTarget(t, shape, tensor.F32)}
	r := eagle.NewRecipe(3).For(j.Target)
	r.HeadText = traintest.HeadText()
	r.Steps, r.TestSteps = 2, 2
	r.Places, r.Later = 6, 3
	if len(r.From) == 0 {
		t.Fatal("the head begins with random weights")
	}
	run := func(stopAt string) (begun bool, err error) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		j.Note = func(s string) {
			isBeginning := strings.Contains(s, "beginning")
			begun = begun || isBeginning
			if isBeginning && stopAt == "beginning" {
				stop()
			}
		}
		j.Report = func(train.Progress) {
			if stopAt == "step" {
				stop()
			}
		}
		err = j.TrainHead(ctx, "head", &r)
		return begun, err
	}
	for _, c := range []struct {
		stopAt string
		begins bool
	}{{"beginning", true}, {"step", true}, {"", false}} {
		begun, err := run(c.stopAt)
		if begun != c.begins || errors.Is(err, context.Canceled) != (c.stopAt != "") || err != nil && c.stopAt == "" {
			t.Errorf("stopped at %q: its beginning is made: %v, %v", c.stopAt, begun, err)
		}
		found, err := filepath.Glob(filepath.Join(j.Dir, "head", "checkpoint-*"))
		if err != nil || len(found) > 0 == (c.stopAt == "beginning") {
			t.Errorf("stopped at %q: checkpoints %v, %v", c.stopAt, found, err)
		}
	}
}

func opens[H any](open func(registry.Head, registry.Target) (H, error)) func(registry.Head, registry.Target) error {
	return func(h registry.Head, t registry.Target) error {
		_, err := open(h, t)
		return err
	}
}

// Heads in training get from a target, to the bit, what it computes in serving: logits at every place, and
// taps. Over a draft vocabulary it is nearly the same, also for targets that scale or cap their logits.
func TestFrozenServes(t *testing.T) {
	changed := 0 // targets whose logits are more than a product
	for i, s := range tinyShapes(t) {
		m := randomTarget(t, s, []tensor.Type{tensor.Q8_0, tensor.F32, tensor.BF16, tensor.Q4_0}[i%4])
		f := train.NewFrozen(m, []int{0, s.Layers})
		texts := [][]int32{{1, 2, 3, 4, 5, 6, 7}, {9, 8, 7, 6, 5, 4, 3}}
		x := f.Read(texts)
		var soft autograd.Soft
		soft.Temperature = 1
		f.Distributions(&soft, x, len(texts), 0, len(texts[0]), &m.Head)
		for i, text := range texts {
			p, c := m.NewPass(), m.NewCache()
			if err := p.Prefill(context.Background(), c, text, true); err != nil {
				t.Fatal(err)
			}
			exec, logits := nn.NewExec(m.Pool()), nn.NewMat(1, m.Config.Vocab)
			exec.Linear(nn.Source{X: x.Slice((i+1)*len(text)-1, (i+1)*len(text)), Norm: &m.Norm},
				nn.Proj{Linear: &m.Head, Dst: logits})
			if !slices.Equal(logits.Row(0), p.Logits(0, 0)) {
				t.Errorf("%s: text %d ends in other logits than those that are served", s.Name, i)
			}
			tokens, some := []int32{3, 1, 7}, nn.NewMat(1, 3)
			output, err := f.OutputOf(tokens, gemm.F32)
			if err != nil {
				t.Fatal(err)
			}
			exec.Linear(nn.Source{X: x.Slice((i+1)*len(text)-1, (i+1)*len(text)), Norm: &m.Norm},
				nn.Proj{Linear: output.Says, Dst: some})
			largest := slices.Max(logits.Row(0)) - slices.Min(logits.Row(0))
			for at, token := range tokens {
				if got, want := some.Row(0)[at], logits.Row(0)[token]; math.Abs(float64(got-want)) > .03*float64(largest) {
					t.Errorf("%s: of a draft vocabulary token %d has logit %g, want %g", s.Name, token, got, want)
				}
			}
			if m.Head.Scale != 0 && m.Head.Scale != 1 || m.Head.Cap != 0 || m.Head.Bias != nil {
				changed++
			}
			embedded := make([]float32, m.Config.Hidden)
			m.Embed.Row(embedded, int(text[2]))
			if got := f.Taps.Row(i*len(text) + 2)[:m.Config.Hidden]; !slices.Equal(got, embedded) {
				t.Errorf("%s: the embedding of text %d is another", s.Name, i)
			}
			c.Free()
		}
	}
	if changed == 0 {
		t.Error("no target scales or caps its logits")
	}
}

// Whatever interrupts the generation of conversations, and whatever a kill leaves of the last line, the result is the
// same: each conversation once, with its own number, without duplicate texts. Adding more later keeps existing ones.
func TestAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "answers")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		first := rapid.IntRange(0, 9).Draw(t, "first")
		n := rapid.IntRange(1, 30).Draw(t, "conversations")
		talk := func(number int) (list []train.Conversation) {
			for turn := range number % 3 { // every third has none
				list = append(list, train.Conversation{Tokens: []int32{int32(number / 6), int32(turn), 99}, From: 1 + turn,
					Greedy: number%2 == 0})
			}
			return list
		}
		j := train.Job{Dir: dir}
		var mu sync.Mutex
		asked := 0
		prompts := ""
		key := func(number int) string { return fmt.Sprint(prompts, number) }
		run := func(stopAt int, source string) error {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			return j.Answer(ctx, first, n, rapid.IntRange(1, 5).Draw(t, "at once"), source, key,
				func(ctx context.Context, number int) ([]train.Conversation, error) {
					mu.Lock()
					defer mu.Unlock()
					asked++
					if asked == stopAt {
						stop()
					}
					if ctx.Err() != nil {
						return nil, ctx.Err()
					}
					return talk(number), nil
				})
		}
		for range rapid.IntRange(0, 3).Draw(t, "interruptions") {
			asked = 0
			_ = run(rapid.IntRange(1, 20).Draw(t, "stop at"), "teacher")
			files, err := filepath.Glob(filepath.Join(dir, "answers-*.jsonl"))
			if err != nil || len(files) != 1 {
				t.Fatalf("answers are in %q, %v: want one file", files, err)
			}
			path := files[0]
			if b, err := os.ReadFile(path); err == nil && len(b) > 0 { // as if killed in the middle of a line
				cut := rapid.IntRange(max(0, len(b)-12), len(b)).Draw(t, "bytes left")
				if err := os.Truncate(path, int64(cut)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := run(-1, "teacher"); err != nil {
			t.Fatal(err)
		}
		var want []train.Conversation
		for i := first; i < first+n; i++ {
			for _, c := range talk(i) {
				if !slices.ContainsFunc(want, func(w train.Conversation) bool { return slices.Equal(w.Tokens, c.Tokens) }) {
					want = append(want, c)
				}
			}
		}
		if len(want) != len(j.Answers) || len(want) > 0 && !reflect.DeepEqual(j.Answers, want) {
			t.Fatalf("conversations\n%v, want\n%v", j.Answers, want)
		}
		asked = 0
		if err := run(-1, "teacher"); err != nil || asked != 0 {
			t.Fatalf("%d conversations are held again: %v", asked, err)
		}
		n += 4
		if err := run(-1, "teacher"); err != nil || asked != 4 {
			t.Fatalf("%d conversations are held for 4 more: %v", asked, err)
		}
		asked = 0
		if err := run(-1, "another teacher"); err != nil || asked != n {
			t.Fatalf("%d of %d conversations are held by another: %v", asked, n, err)
		}
		asked = 0
		if err := run(-1, "teacher"); err != nil || asked != 0 {
			t.Fatalf("%d conversations are held again, after another's: %v", asked, err)
		}
		for i, want := range []int{n, 0, 0} {
			prompts = []string{"other prompts", "", "other prompts"}[i]
			asked = 0
			if err := run(-1, "teacher"); err != nil || asked != want {
				t.Fatalf("%d conversations are held of prompts %q, want %d: %v", asked, prompts, want, err)
			}
		}
	})
}

// Answers may be shorter than a head's drafts: then nothing is measured, and heads of all kinds are trained on them.
func TestShortAnswers(t *testing.T) {
	j := traintest.JobWithTarget(t)
	for length, most := range map[int]int{2: 0, 18: 2} { // 16 tokens are enough for a held-out text
		j.Answers = nil
		for i := range int32(40) {
			text := append([]int32{i + 20}, make([]int32, length)...)
			j.Answers = append(j.Answers, train.Conversation{Tokens: text, From: 1, Greedy: i%2 == 0})
		}
		for name, c := range allTrained {
			wide := given{"Steps": 1}
			if _, ok := c.tiny["Block"]; ok {
				wide["Block"] = 16
			}
			r, err := c.given(c.tiny, wide).Recipe(j.Target)
			if err != nil {
				t.Fatal(err)
			}
			shorten(&r.Common().HeadText)
			r.Common().Held = train.DefaultHeadText().Held
			r.Common().ValidateEvery = 1
			own, _, last := traintest.Watched(j, traintest.EveryStep)
			name = fmt.Sprint(name, length)
			if err := own.TrainHead(context.Background(), name, r); err != nil || len(last.Validation) > most {
				t.Errorf("%s: %v, measured %v %v", name, err, last.Validation, last.Figures)
				continue
			}
			card, err := os.ReadFile(filepath.Join(j.Dir, name, "card.md"))
			if !strings.Contains(string(card), "1 steps over") {
				t.Errorf("%s: %v, the card %s", name, err, card)
			}
		}
	}
}

// A step in which a head has nothing to learn, because its output has none of the tokens, does not end the training.
func TestNothingToLearn(t *testing.T) {
	j := traintest.JobWithTarget(t)
	for i := range int32(200) { // the draft vocabulary has the prompts' tokens
		text := []int32{200, 200, 200, 201, 201, 201, i, i + 1}
		j.Answers = append(j.Answers, train.Conversation{Tokens: text, From: 6})
	}
	c := allTrained["eagle"]
	if err := c.train(j, "eagle", c.given(c.tiny, given{"Steps": 2, "DraftVocab": 2})); err != nil {
		t.Error(err)
	}
}

// Two commands may generate text in one folder at the same time: each adds whole lines to the other's.
func TestAnswersOfTwo(t *testing.T) {
	j := train.Job{Dir: t.TempDir()}
	answer := func(tokens int, before func()) train.Answerer {
		return func(_ context.Context, number int) ([]train.Conversation, error) {
			if number == 2 {
				before()
			}
			return []train.Conversation{{Tokens: slices.Repeat([]int32{int32(number)}, tokens), From: 1}}, nil
		}
	}
	hold := func(n int, a train.Answerer) error {
		own := j
		return own.Answer(context.Background(), 0, n, 1, "model", strconv.Itoa, a)
	}
	err := hold(4, answer(3, func() {
		if err := hold(6, answer(40, func() {})); err != nil {
			t.Error(err)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := hold(6, func(_ context.Context, number int) ([]train.Conversation, error) {
		return nil, fmt.Errorf("it is held again")
	}); err != nil {
		t.Error(err)
	}
}

// A damaged line in a file of answers is generated again, and the lines after it are kept.
func TestAnswersDamaged(t *testing.T) {
	j := train.Job{Dir: t.TempDir()}
	asked := 0
	hold := func() {
		asked = 0
		err := j.Answer(context.Background(), 0, 6, 1, "model", strconv.Itoa,
			func(_ context.Context, number int) ([]train.Conversation, error) {
				asked++
				return []train.Conversation{{Tokens: []int32{int32(number), 1, 2}, From: 1}}, nil
			})
		if err != nil || len(j.Answers) != 6 {
			t.Fatalf("%d answers: %v", len(j.Answers), err)
		}
	}
	hold()
	files, err := filepath.Glob(filepath.Join(j.Dir, "answers-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.IndexByte(b, '\n')+3] = 0
	if err := os.WriteFile(files[0], b[:len(b)-5], 0o666); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 0} {
		hold()
		if asked != want {
			t.Errorf("%d conversations are held again, want %d", asked, want)
		}
	}
}

// Requests are repeated while the server is busy or broken, but not if the request is wrong.
// Answers are tokens, and say whether the server ended them.
func TestServer(t *testing.T) {
	m := traintest.Shipped(t)
	failures := []int{http.StatusTooManyRequests, http.StatusInternalServerError}
	var asked map[string]any
	ids := ""
	h := http.NewServeMux()
	h.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"data":[{"id":"some"}]}`) })
	h.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		if len(failures) > 0 {
			status := failures[0]
			failures = failures[1:]
			w.Header().Set("Retry-After", "1")
			http.Error(w, "later", status)
			return
		}
		if r.Header.Get("Authorization") != "Bearer key" {
			http.Error(w, "no key", http.StatusUnauthorized)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if asked["max_tokens"] == 0. {
			fmt.Fprint(w, `{"error":{"message":"overloaded"}}`) // some gateways send this with status 200
			return
		}
		fmt.Fprintf(w, `{"choices":[{"text":" func main","finish_reason":"stop"%s}]}`, ids)
	})
	s := httptest.NewServer(h)
	defer s.Close()
	var notes []string
	server := &train.Server{URL: s.URL + "/v1", Key: "key", Tokenizer: m.Tokenizer,
		Note: func(text string) { notes = append(notes, text) }}
	got, ended, err := server.Continue(context.Background(), []int32{1, 2}, 9, 1, 3)
	if len(notes) != 1 || !strings.Contains(notes[0], "later") {
		t.Errorf("of requests sent again is said %q, want once why", notes)
	}
	if err != nil || m.Tokenizer.Decode(got, tokenizer.DecodeOptions{}) != " func main" || !ended {
		t.Errorf("tokens %v, ended %v, %v", got, ended, err)
	}
	want := map[string]any{"model": "some", "prompt": []any{1., 2.}, "max_tokens": 9., "temperature": 1., "seed": 3.,
		"return_token_ids": true}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("the server is asked %v, want %v", asked, want)
	}
	llama, err := synth.Lookup("tiny-llama2") // its tokenizer puts a space before a text
	if err != nil {
		t.Fatal(err)
	}
	tok := randomTarget(t, llama, tensor.F32).Tokenizer
	for _, most := range []int{20, 2} {
		server.Tokenizer = tok
		got, ended, err := server.Continue(context.Background(), []int32{1, 2}, most, 1, 3)
		text := tok.Decode(got, tokenizer.DecodeOptions{Continue: true})
		if err != nil || !strings.HasPrefix(" func main", text) || ended != (text == " func main") ||
			ended != (most > 2) || len(got) > most {
			t.Errorf("at most %d tokens: %v, %q, ended %v, %v", most, got, text, ended, err)
		}
	}
	if _, _, err := server.Continue(context.Background(), nil, 0, 0, 0); err == nil ||
		!strings.Contains(err.Error(), "overloaded") {
		t.Errorf("an error with status 200: %v", err)
	}
	ids = `,"token_ids":[1,2,300]` // of a server that sends them: special tokens have no text
	got, ended, err = server.Continue(context.Background(), []int32{1, 2}, 9, 1, 3)
	if err != nil || !slices.Equal(got, []int32{1, 2, 300}) || !ended {
		t.Errorf("tokens %v, ended %v, %v", got, ended, err)
	}
	for _, none := range []int{-1, tok.VocabSize()} {
		ids = fmt.Sprintf(`,"token_ids":[1,%d]`, none)
		if _, _, err := server.Continue(context.Background(), []int32{1, 2}, 9, 1, 3); err == nil ||
			!strings.Contains(err.Error(), "another model") {
			t.Errorf("token %d: %v", none, err)
		}
	}
	server = &train.Server{URL: s.URL, Tokenizer: m.Tokenizer}
	if _, _, err := server.Continue(context.Background(), nil, 9, 0, 0); err == nil ||
		!strings.Contains(err.Error(), "no key") {
		t.Errorf("a request without a key: %v", err)
	}
}
