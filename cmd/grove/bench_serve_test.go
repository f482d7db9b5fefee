package main

import (
	"encoding/json"
	"os"
	"path/filepath"
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
}
