package grove_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tokenizer"
)

const city = `{"type": "object", "properties": {
	"name": {"type": "string", "maxLength": 20},
	"country": {"enum": ["France", "Germany", "Norway"]},
	"inhabitants": {"type": "integer", "minimum": 1000, "maximum": 99999999},
	"coordinates": {"type": "array", "items": {"type": "number", "minimum": -180, "maximum": 180}, "minItems": 2, "maxItems": 2}
}, "required": ["name", "country", "inhabitants", "coordinates"], "additionalProperties": false}`

// Under a grammar, schema or expression every drafter gives the text of plain decoding, at every
// temperature, and it matches.
func TestConstrainedText(t *testing.T) {
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 1, DraftGGUF: models.Draft(),
		HeadGGUF: models.Heads()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	valid := func(r *grove.Request, text string) bool {
		if r.JSONSchema == "" {
			return regexp.MustCompile(`^(\(\w+: [0-9]{1,3}(, [0-9]{1,3})*\)\n){1,3}$`).MatchString(text)
		}
		var v struct {
			Name, Country string
			Inhabitants   int
			Coordinates   []float64
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		return d.Decode(&v) == nil && len([]rune(v.Name)) <= 20 && strings.Contains("France Germany Norway", v.Country) &&
			v.Inhabitants >= 1000 && v.Inhabitants <= 99999999 && len(v.Coordinates) == 2
	}
	for i := range 9 {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		r := []grove.Request{
			{JSONSchema: city},
			{Grammar: "root ::= line{1,3}\nline ::= \"(\" [a-z]{2,5} \": \" number (\", \" number){0,3} \")\\n\"\nnumber ::= [0-9]{1,3}"},
			{Regex: `(\([a-z]{2,4}: [0-9]{1,3}(, [0-9]{1,2}){0,4}\)\n){1,3}`},
		}[i%3]
		r.Sampling = grove.Sampling{Temperature: float32(rng.IntN(3)), Seed: rng.Uint64(), TopP: []float32{0, 0.9}[rng.IntN(2)]}
		want := collect(t, m, "The largest city", r)
		if want.Finish != grove.FinishStop && want.Finish != grove.FinishEnd || !valid(&r, want.Text) {
			t.Fatalf("%q, ended by %s", want.Text, want.Finish)
		}
		r.Drafter = []string{"lookup", "eagle3", "jetspec", "specblock", "best-first"}[rng.IntN(5)]
		r.Uncontrolled = rng.IntN(2) == 0
		got := collect(t, m, "The largest city", r)
		if got.Text != want.Text || got.Finish != want.Finish {
			t.Fatalf("%s: %q, want %q", r.Drafter, got.Text, want.Text)
		}
	}
}

// A stop string that does not occur in a constrained text changes nothing, even if the text ends
// with a beginning of it.
func TestConstrainedTextWithStops(t *testing.T) {
	m := open(t, "tiny-llama2", grove.Options{Threads: 1})
	for i := range 20 {
		rng := rand.New(rand.NewPCG(uint64(i), 2))
		r := grove.Request{Regex: `(ab|é|"x"){1,6}}}`, Sampling: grove.Sampling{Temperature: 1, Seed: rng.Uint64()}}
		want := collect(t, m, "a tale", r)
		held := string([]rune(want.Text)[len([]rune(want.Text))-1-rng.IntN(3):])
		r.Stop = []string{held + "!"}
		if got := collect(t, m, "a tale", r); got.Text != want.Text || got.Finish != grove.FinishStop || got.Stop != "" {
			t.Errorf("stop %q: %q, ended by %s %q; without it %q", r.Stop[0], got.Text, got.Finish, got.Stop, want.Text)
		}
	}
}

// Reasoning ends after its budget, in every round that drafts across its end, and the output continues under its
// schema.
func TestReasoningBudget(t *testing.T) {
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 1, DraftGGUF: models.Draft(),
		HeadGGUF: models.Heads()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, budget := range []int{-1, 1, 7, 40} {
		for _, schema := range []string{"", `{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}`} {
			r := grove.Request{Reasoning: true, ReasoningOpen: true, ReasoningBudget: budget, JSONSchema: schema, MaxTokens: 80,
				Sampling: grove.Sampling{Temperature: 1, Seed: uint64(budget)}}
			first := ""
			for _, drafter := range []string{"plain", []string{"lookup", "eagle3", "jetspec"}[i%3]} {
				r.Drafter = drafter
				got := collect(t, m, "<think>", r)
				if first == "" {
					first = got.Text
				}
				thought, answer, closed := strings.Cut(got.Text, "</think>")
				n := len(m.Tokenizer().Encode(thought, tokenizer.EncodeOptions{})) // not more than were generated
				if got.Text != first || !closed || n > max(budget, 0) || schema != "" && !json.Valid([]byte(answer)) {
					t.Errorf("budget %d, %s: %q, plain %q", budget, drafter, got.Text, first)
				}
			}
		}
	}
}

// What cannot be compiled is an error of the field.
func TestConstraintErrors(t *testing.T) {
	m := open(t, "tiny-llama2", grove.Options{Threads: 1})
	for field, r := range map[string]grove.Request{
		"Grammar":    {Grammar: "root ::= x"},
		"JSONSchema": {JSONSchema: `{"$ref": "#/x"}`},
		"Regex":      {Regex: "a", JSONSchema: "{}"},
	} {
		_, err := grove.Collect(m.Generate(ctx, "a", r))
		var option *grove.OptionError
		if !errors.As(err, &option) || option.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Costs and gains of a schema: tokens/s and tokens per pass under it, relative to free text from
// the same prompt, in turn.
func BenchmarkConstrained(b *testing.B) {
	m, err := grove.OpenGGUF("embedded", models.Target(), padded(grove.Options{Threads: 1, DraftGGUF: models.Draft(),
		HeadGGUF: models.Heads()}, 100e6))
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for _, drafter := range []string{"plain", "lookup", "eagle3"} {
		b.Run(drafter, func(b *testing.B) {
			var speeds, taus []float64
			for i := range b.N + 1 {
				r := grove.Request{Drafter: drafter, MaxTokens: 160, IgnoreEnd: true,
					Sampling: grove.Sampling{Temperature: 1, Seed: uint64(i)}}
				free := collect(b, m, "The largest cities, as JSON:\n", r)
				r.JSONSchema = `{"type": "array", "minItems": 20, "items": ` + city + `}`
				bound := collect(b, m, "The largest cities, as JSON:\n", r)
				if i == 0 { // the first computes the masks, as a server does once
					continue
				}
				perSecond := func(r *grove.Result) float64 { return float64(r.Stats.Tokens-1) / r.Stats.Decode.Seconds() }
				speeds, taus = append(speeds, perSecond(bound)/perSecond(free)), append(taus, bound.Stats.Tau()/free.Stats.Tau())
			}
			slices.Sort(speeds)
			slices.Sort(taus)
			b.ReportMetric(speeds[len(speeds)/2], "speed-ratio")
			b.ReportMetric(taus[len(taus)/2], "tau-ratio")
		})
	}
}
