package grammar

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// counted is a context that counts how often it is asked for its end, and ends when it was asked so often.
type counted struct {
	context.Context
	asked, ends int
}

func (c *counted) Err() error {
	c.asked++
	if c.ends > 0 && c.asked > c.ends {
		return context.Canceled
	}
	return nil
}

func (c *counted) Value(any) any { return nil }

// heavy is a schema that takes long to find out that it cannot be held.
func heavy(more int) string {
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprintf(`{"type":"object","properties":{"a%d":{"type":"integer","minimum":%d,"maximum":%d}}}`,
			i, i, int64(100000000000000000)+int64(i)*7))
	}
	text := `{"type":"object","properties":{"x":{"oneOf":[` + strings.Join(list, ",") + `]`
	for i := range more {
		text += fmt.Sprintf(`,"x%d":0`, i)
	}
	return text + `}}}`
}

// What cannot be held is left out, as narrow as can be.
func TestRelax(t *testing.T) {
	for _, c := range []struct {
		schema, want string
		left         []string
	}{
		{`{"type":"object"}`, `{"type":"object"}`, nil},
		{`{"properties":{"a":{"type":"string","pattern":"^\\bx","minLength":3,"title":"t"},"b":{"type":"integer"}}}`,
			`{"properties": {"a": {"type": "string", "minLength": 3, "title": "t"}, "b": {"type": "integer"}}, "type": "object"}`,
			[]string{"#/properties/a/pattern"}},
		{`{"type":"object","$recursiveRef":"#","x":1}`, `{"type": "object", "x": 1}`, []string{"#/$recursiveRef"}},
		{`{"properties":{"a":{"type":"string","pattern":"^\\bx","$recursiveRef":"#"}}}`,
			`{"properties": {"a": {"type": "string"}}, "type": "object"}`, []string{"#/properties/a"}},
		{`{"properties":{"a":{"uniqueItems":true,"type":"array","items":{"type":"string"}}}}`,
			`{"properties": {"a": {"type": "array", "items": {"type": "string"}}}, "type": "object"}`,
			[]string{"#/properties/a/uniqueItems"}},
		{`{"properties":{"a":{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true}}}`,
			`{"properties":{"a":{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true}}}`, nil},
	} {
		got, err := Relax(context.Background(), c.schema, MostWork)
		if err != nil || got.Schema != c.want || !slices.Equal(got.Left, c.left) || got.Work <= 0 || got.Work > 1000 {
			t.Errorf("%s: %+v, %v; want %s and %v", c.schema, got, err, c.want, c.left)
		}
	}
}

// Keywords that say nothing of values are not tried.
func TestRelaxTriesKeywords(t *testing.T) {
	text := `{"type":"object","properties":{"a":{"type":"string","pattern":"^\\bx"`
	for i := range 2000 {
		text += fmt.Sprintf(`,"x%d":0`, i)
	}
	ctx := &counted{Context: context.Background()}
	got, err := Relax(ctx, text+"}}}", MostWork)
	if err != nil || !slices.Equal(got.Left, []string{"#/properties/a/pattern"}) || ctx.asked > 50 {
		t.Errorf("%v, %v: the context was asked %d times", got.Left, err, ctx.asked)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "keywords.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "keyword" && f.Name.Name != "accept" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			clause, ok := n.(*ast.CaseClause)
			for i := 0; ok && i < len(clause.List); i++ {
				literal, ok := clause.List[i].(*ast.BasicLit)
				if name := strings.Trim(literal.Value, `"`); !ok || name != "type" && !slices.Contains(removable, name) {
					t.Errorf("%s is not tried", name)
				}
			}
			return true
		})
	}
}

// Relaxing ends when its work is done, whatever the schema: what is left has its type alone.
func TestRelaxIsBounded(t *testing.T) {
	nested := func(schema string, levels int) string {
		for i := range levels {
			schema = fmt.Sprintf(`{"type":"object","properties":{"x%d":%s,"a":{"type":["string","null"],"pattern":"^\\bx"}}}`,
				i, schema)
		}
		return schema
	}
	const oneTry = 2 * maxApplied
	deep, ctx := nested(heavy(2000), 20), &counted{Context: context.Background()}
	got, err := Relax(ctx, deep, MostWork)
	if err != nil || got.Work > MostWork+oneTry || ctx.asked > 300 || len(got.Left) == 0 {
		t.Errorf("work %d, %d questions, %d left out, %v", got.Work, ctx.asked, len(got.Left), err)
	}
	if _, err := JSONSchema(got.Schema); err != nil {
		t.Errorf("what is left cannot be held: %v", err)
	}
	shallow := nested(`{"type":"object"}`, 5)
	if got, err = Relax(ctx, shallow, MostWork); err != nil || len(got.Left) != 5 {
		t.Fatalf("%v, %v", got.Left, err)
	}
	for _, most := range []int{0, got.Work / 2, got.Work - 1} {
		if less, err := Relax(ctx, shallow, most); err != nil || less.Work <= most || less.Work > most+oneTry {
			t.Errorf("work %d of %d, %v", less.Work, most, err)
		}
	}
	if same, err := Relax(ctx, shallow, got.Work); err != nil || !reflect.DeepEqual(same, got) {
		t.Errorf("with as much work as it takes it is another: %v", err)
	}
	if got := (&object{[]string{"type"}, map[string]any{"type": "none"}}).typeAlone(); len(got.names) > 0 {
		t.Errorf("%v is no type", got)
	}
}

// The end of the context ends it: no schema is compiled any more.
func TestRelaxEnds(t *testing.T) {
	parent, cancel := context.WithCancelCause(context.Background())
	cancel(context.Canceled)
	const ends = 2
	got, err := Relax(&counted{parent, 0, ends}, heavy(0), MostWork)
	if err == nil || got.Work > 2*ends*maxApplied {
		t.Errorf("ended at question %d: work %d, %v", ends, got.Work, err)
	}
}

// Places of schemas are short: long ones are refused, or told by their beginning.
func TestPlacesAreShort(t *testing.T) {
	long := strings.Repeat("n", maxPath)
	for _, source := range []string{
		`{"properties":{"` + long + `":{"type":"string"}}}`,
		`{"properties":{"a":{"properties":{"` + long[:maxPath/2] + `":{"properties":{"` + long[:maxPath/2] + `":{}}}}}}}`,
		`{"allOf":[` + strings.Repeat(`{"$id":"`+long+`"},`, maxIDs/maxPath) + `{"$id":"x"}]}`,
	} {
		for _, err := range []error{func() error { _, err := JSONSchema(source); return err }(),
			func() error { _, err := Relax(context.Background(), source, MostWork); return err }()} {
			if err == nil || !strings.Contains(err.Error(), "shorten them") {
				t.Errorf("%.60s: %v", source, err)
			}
		}
	}
	var list []string
	for i := range 50 {
		list = append(list, fmt.Sprintf(`"%d":{"type":"string","pattern":"^\\bx"}`, i))
	}
	r, err := Relax(context.Background(),
		`{"properties":{"`+long[:maxPath/2]+`":{"properties":{`+strings.Join(list, ",")+`}}}}`, MostWork)
	if err != nil || len(r.Left) == 0 {
		t.Fatalf("%v, %v", r.Left, err)
	}
	for _, place := range r.Left {
		if len(place) > 2*mostPlace {
			t.Fatalf("a place of %d bytes", len(place))
		}
	}
}
