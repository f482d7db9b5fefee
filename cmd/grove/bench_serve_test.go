package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/bench"
)

// Texts of all drafters and numbers of callers are the same. Masks are measured for each drafter.
func TestBenchServeSchema(t *testing.T) {
	schema := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(schema, []byte(`{"type": "array", "minItems": 40, "items": {"type": "object",
		"properties": {"description": {"const": "an entry"}, "amount": {"type": "integer"}}, "required": ["description", "amount"],
		"additionalProperties": false}}`), 0o666); err != nil {
		t.Fatal(err)
	}
	prompts := filepath.Join(t.TempDir(), "prompts.jsonl")
	if err := os.WriteFile(prompts, []byte(`{"prompt": "The list of"}`+"\n"+`{"prompt": "func sum"}`+"\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := runGrove("", "bench", "serve", "--suite", prompts, "--prompts", "2", "--clients",
		"1,3", "--requests", "1",
		"--rounds", "1", "-n", "48", "--json-schema", schema, "--json")
	if code != 0 {
		t.Fatalf("status %d\n%s", code, stderr)
	}
	var r bench.ServeReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if row.Different > 0 {
			t.Errorf("%s, %d callers: %d texts differ", row.Drafter, row.Clients, row.Different)
		}
	}
	for _, m := range r.Masks {
		if m.Speed <= 0 || m.Tau <= 0 || m.Drafter == "plain" && m.Tau != 1 {
			t.Errorf("%s: %.2f of the speed, %.2f of the tokens a round", m.Drafter, m.Speed, m.Tau)
		}
	}
	if len(r.Rows) != 4 || len(r.Masks) != 2 {
		t.Errorf("%d rows and %d drafters with a schema: want 4 and 2", len(r.Rows), len(r.Masks))
	}
	if code, _, stderr := runGrove("", "bench", "serve", "--suite", prompts, "--json-schema", schema+".none"); code == 0 {
		t.Errorf("a schema that is not there was taken: %s", stderr)
	}
	if err := os.WriteFile(schema, []byte(`{"const": 1}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runGrove("", "bench", "serve", "--suite", prompts, "--prompts", "1", "--clients", "1", "--rounds",
		"1", "-n", "8", "--drafters", "plain", "--json-schema", schema); code == 0 || !strings.Contains(stderr, "one token") {
		t.Errorf("texts of one token under a schema: status %d, %s", code, stderr)
	}
}

// Plain decoding may be listed at any place and have a name: the others are compared with it.
func TestBenchServePlainLast(t *testing.T) {
	prompts := filepath.Join(t.TempDir(), "prompts.jsonl")
	if err := os.WriteFile(prompts, []byte(`{"prompt": "one two three"}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	out := must(t, "", "bench", "serve", "--suite", prompts, "--prompts", "1", "--clients", "2", "--requests", "1",
		"--rounds", "1", "-n", "8", "--drafters", "lookup", "--drafters", "plain@name=alone", "--json")
	var r bench.ServeReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if !(row.OverPlain > 0) || row.Drafter == "alone" && row.OverPlain != 1 {
			t.Errorf("%s, %d callers: %g of plain decoding's speed", row.Drafter, row.Clients, row.OverPlain)
		}
	}
}

// Methods have budgets of their own and no controller, and texts stay the same. Settings that callers cannot have are
// refused.
func TestBenchServeMethods(t *testing.T) {
	prompts := filepath.Join(t.TempDir(), "prompts.jsonl")
	text := `{"prompt": "one two three one two three one two three one"}` + "\n"
	if err := os.WriteFile(prompts, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	serve := func(drafters string) (code int, out, stderr string) {
		return runGrove("", "bench", "serve", "--suite", prompts, "--prompts", "1", "--clients", "2", "--requests", "1",
			"--rounds", "1", "-n", "40", "--drafters", drafters, "--json")
	}
	code, out, stderr := serve("lookup@no-controller@budget={2,6}")
	if code != 0 {
		t.Fatalf("status %d\n%s", code, stderr)
	}
	var r bench.ServeReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	tau := map[string]float64{}
	for _, row := range r.Rows {
		tau[row.Drafter] = row.Tau
		if row.Different > 0 {
			t.Errorf("%s, %d callers: %d texts differ", row.Drafter, row.Clients, row.Different)
		}
	}
	small, large := tau["lookup@no-controller@budget=2"], tau["lookup@no-controller@budget=6"]
	if small <= 1 || small > 2 || large <= small || large > 6 {
		t.Errorf("%v tokens a round with 2 and 6 nodes: want more than 1 and at most as many, more with more", tau)
	}
	for _, drafters := range []string{"lookup@cached", "lookup@memory", "lookup@budget=1", "lookup@none"} {
		if code, _, stderr := serve(drafters); code != 2 {
			t.Errorf("%s: status %d, want 2: %s", drafters, code, stderr)
		}
	}
}
