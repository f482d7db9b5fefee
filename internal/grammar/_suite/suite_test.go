// Package suite measures how much of JSON schema package grammar honours, on the cases of JSON-Schema-Test-Suite.
//
//	JSON_SCHEMA_SUITE=FOLDER go test -v ./...
//
// FOLDER is a checkout of json-schema-org/JSON-Schema-Test-Suite. Without it the test is skipped.
package suite

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/grammar"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// leastAccepted is the share of schemas that are to be accepted.
const leastAccepted = 0.95

// Each schema of the suite's required cases is accepted, or refused by a keyword; texts of its
// grammar are values that it accepts.
func TestSuite(t *testing.T) {
	folder := os.Getenv("JSON_SCHEMA_SUITE")
	if folder == "" {
		t.Skip("JSON_SCHEMA_SUITE names no checkout of JSON-Schema-Test-Suite")
	}
	files, err := filepath.Glob(filepath.Join(folder, "tests", "draft2020-12", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	schemas := 0
	accepted := 0
	outputs := 0
	instances := 0
	covered := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Data  json.RawMessage
				Valid bool
			}
		}
		if err := json.Unmarshal(data, &groups); err != nil {
			t.Fatal(err)
		}
		for _, group := range groups {
			name := strings.TrimSuffix(filepath.Base(file), ".json") + ": " + group.Description
			any := false // value that is valid
			for _, test := range group.Tests {
				any = any || test.Valid
			}
			schemas++
			g, err := grammar.JSONSchema(string(group.Schema))
			if err != nil && strings.Contains(err.Error(), "outside of the schema") { // hand it the suite's remote schemas
				group.Schema = bundle(t, folder, group.Schema)
				g, err = grammar.JSONSchema(string(group.Schema))
			}
			if err != nil {
				if !any && strings.Contains(err.Error(), "no text") {
					accepted++ // the schema has no value
					continue
				}
				t.Logf("refused: %s: %v", name, err)
				continue
			}
			accepted++
			valid, err := compile(group.Schema)
			if err != nil {
				t.Logf("not judged: %s: %v", name, err)
				continue
			}
			for range 50 {
				text, err := g.Sample(rng.IntN, rng.IntN(300))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					break
				}
				outputs++
				value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
				if err == nil {
					err = valid.Validate(value)
				}
				if err != nil {
					t.Errorf("%s: schema %s: output %s: %v", name, group.Schema, text, err)
					break
				}
			}
			for _, test := range group.Tests {
				if ok, _ := g.Accepts(spaced(t, test.Data)); test.Valid {
					instances++
					if ok {
						covered++
					}
				} else if ok {
					t.Errorf("%s: schema %s: %s is accepted", name, group.Schema, test.Data)
				}
			}
		}
	}
	t.Logf("%d schemas, %.1f %% accepted; %d outputs, all valid unless said; of %d valid instances %.1f %% can be written",
		schemas, 100*float64(accepted)/float64(schemas), outputs, instances, 100*float64(covered)/float64(instances))
	if float64(accepted) < leastAccepted*float64(schemas) {
		t.Errorf("%d of %d schemas are accepted: want %.0f %%", accepted, schemas, 100*leastAccepted)
	}
}

// bundle puts the suite's remote schemas into a schema's $defs, each under its address.
func bundle(t *testing.T, folder string, schema json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(schema, &all) != nil {
		return schema
	}
	defs := map[string]json.RawMessage{}
	if json.Unmarshal(all["$defs"], &defs) != nil && all["$defs"] != nil {
		return schema
	}
	root := filepath.Join(folder, "remotes")
	err := filepath.WalkDir(filepath.Join(root, "draft2020-12"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var remote map[string]json.RawMessage
		if json.Unmarshal(data, &remote) != nil || remote["$schema"] != nil && strings.Contains(path, "metaschema") {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if remote["$id"] == nil {
			remote["$id"], _ = json.Marshal("http://localhost:1234/" + filepath.ToSlash(name))
		}
		defs["remote "+name], _ = json.Marshal(remote)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all["$defs"], _ = json.Marshal(defs)
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func compile(schema json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

// spaced is a value as grammars write it: on one line, with a space after commas and colons.
func spaced(t *testing.T, value json.RawMessage) string {
	var b strings.Builder
	text := false
	for i, c := range []byte(value) {
		switch {
		case c == '"' && (i == 0 || value[i-1] != '\\'):
			text = !text
			b.WriteByte(c)
		case text:
			b.WriteByte(c)
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		case c == ',' || c == ':':
			b.WriteByte(c)
			b.WriteByte(' ')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
