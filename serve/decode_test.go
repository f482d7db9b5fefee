package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// allocated returns the number of bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// filled returns a list with enough items to have size bytes.
func filled(item string, size int) string {
	return "[" + strings.Repeat(item+",", size/(len(item)+1)) + item + "]"
}

// A body takes memory in proportion to its bytes, whichever of its lists are long: an error names
// the first list that is too long.
func TestListsAreBounded(t *testing.T) {
	const size = 2 << 20
	for _, c := range []struct {
		body, item, param string
		to                any
	}{
		{`{"input":%s}`, `{}`, "input", &responseBody{}},
		{`{"input":[{"role":"user","content":%s}]}`, `{}`, "input[0].content", &responseBody{}},
		{`{"input":%s}`, `{"content":[{},{},{},{}]}`, "input[", &responseBody{}},
		{`{"tools":%s}`, `{}`, "tools", &responseBody{}},
		{`{"tools":[{"type":"namespace","tools":%s}]}`, `{}`, "tools[0].tools", &responseBody{}},
		{`{"tools":%s}`, `{"tools":[{},{"tools":[{}]}]}`, "tools", &responseBody{}},
		{`{"include":%s}`, `""`, "include", &responseBody{}},
		{`{"messages":%s}`, `{}`, "messages", &chatBody{}},
		{`{"messages":[{"tool_calls":%s}]}`, `{}`, "messages[0].tool_calls", &chatBody{}},
		{`{"messages":%s}`, `{"a":0,"b":0,"c":0}`, "messages", &chatBody{}},
		{`{"tools":%s}`, `{}`, "tools", &chatBody{}},
		{`{"functions":%s}`, `{}`, "functions", &chatBody{}},
		{`{"tool_choice":{"tools":%s}}`, `{}`, "tool_choice.tools", &chatBody{}},
		{`{"logit_bias":%s}`, `[7,false]`, "", &chatBody{}},
		{`{"stop":%s}`, `""`, "stop", &chatBody{}},
		{`{"messages":%s}`, `{}`, "messages", &messagesBody{}},
		{`{"messages":%s}`, `{"content":[{},{},{},{}]}`, "messages[", &messagesBody{}},
		{`{"system":%s}`, `{}`, "system", &messagesBody{}},
		{`{"tools":%s}`, `{}`, "tools", &messagesBody{}},
		{`{"messages":%s}`, `{}`, "messages", &ollamaBody{}},
		{`{"options":{"stop":%s}}`, `""`, "options.stop", &ollamaBody{}},
		{`{"prompt":%s}`, `[]`, "prompt", &completionBody{}},
		{`{"prompt":%s}`, `""`, "prompt", &completionBody{}},
		{`{"guided_choice":%s}`, `""`, "guided_choice", &completionBody{}},
		{`{"input_extra":%s}`, `{}`, "input_extra", &infillBody{}},
		{`{"prompt":%s}`, `0`, "", &completionBody{}},
		{`{"tokens":%s}`, `0`, "", &detokenizeBody{}},
	} {
		body := fmt.Sprintf(c.body, filled(c.item, size))
		var err error
		if got := allocated(func() { err = parseBody([]byte(body), c.to) }); got > 128<<20 {
			t.Errorf("%T, %.40s: %d bytes allocated for %d", c.to, body, got, len(body))
		}
		wrong := new(apiError)
		if !errors.As(err, &wrong) {
			wrong.Param = new(string)
		}
		if !strings.HasPrefix(*wrong.Param, c.param) || (c.param == "") != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), fmt.Sprint(maxElements)) {
			t.Errorf("%T, %.40s: %q: %v; want %q and the bound", c.to, body, *wrong.Param, err, c.param)
		}
	}
}

// A list ends at its first error.
func TestListEndsAtItsError(t *testing.T) {
	body := `{"messages":[7,` + filled(`{"content":[{},{}]}`, 1<<20)[1:] + "}"
	var b chatBody
	var err error
	got := allocated(func() { err = parseBody([]byte(body), &b) })
	if err == nil || !strings.HasPrefix(err.Error(), "messages[0]: ") || got > 3<<20 {
		t.Errorf("%d bytes allocated: %v", got, err)
	}
}

// Items that a request continues from count like its own.
func TestStoredItemsAreBounded(t *testing.T) {
	t.Parallel()
	s := newResponseStore(10, 1<<30)
	previous := ""
	for i := range 3 {
		items := slices.Repeat([]storedItem{{raw: json.RawMessage(`{"role":"user"}`)}}, maxElements/2)
		s.add(&storedResponse{id: fmt.Sprint(i), previous: previous, input: items})
		previous = fmt.Sprint(i)
	}
	for i := range 3 {
		var b responseBody
		if err := parseBody(fmt.Appendf(nil, `{"input":"x","previous_response_id":"%d"}`, i), &b); err != nil {
			t.Fatal(err)
		}
		list, err := b.items(s, "", 1<<30)
		if (err == nil) != (i == 0) || err != nil && !strings.HasPrefix(err.Error(), "previous_response_id: ") {
			t.Errorf("after %d responses: %d items, %v", i+1, len(list), err)
		}
	}
}

// Stored items that a request brings in take no more bytes than its body may have, in whichever way they come. One
// that is named often is read once.
func TestStoredItemsHaveBytes(t *testing.T) {
	s := newResponseStore(10, 1<<30)
	raw := json.RawMessage(`{"role":"assistant","content":"` + strings.Repeat("x", 1000) + `"}`)
	s.add(&storedResponse{id: "a", output: []storedItem{{"i", raw}, {"j", raw}}})
	s.add(&storedResponse{id: "b", previous: "a", input: slices.Repeat([]storedItem{{raw: raw}}, 3)})
	for _, c := range []struct {
		body, param string
		items       int64 // stored ones
	}{
		{`{"input":"x","previous_response_id":"a"}`, "previous_response_id", 2},
		{`{"input":"x","previous_response_id":"b"}`, "previous_response_id", 5},
		{`{"input":[{"id":"i"},{"id":"j"},{"id":"i"}]}`, "input[2].id", 3},
		{`{"input":` + filled(`{"type":"item_reference","id":"i"}`, 34000) + `,"previous_response_id":"b"}`,
			"input[971].id", 977},
	} {
		for _, most := range []int64{c.items * int64(len(raw)), c.items*int64(len(raw)) - 1} {
			var b responseBody
			if err := parseBody([]byte(c.body), &b); err != nil {
				t.Fatal(err)
			}
			var list []inputItem
			var err error
			got := allocated(func() { list, err = b.items(s, "", most) })
			if most == c.items*int64(len(raw)) && err != nil || most < c.items*int64(len(raw)) && err == nil || got > 3<<20 {
				t.Errorf("%.60s: %d bytes allocated for %d items: %v", c.body, got, len(list), err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), c.param+": ") {
				t.Errorf("%.60s: %v, want %s", c.body, err, c.param)
			}
		}
	}
}

// The parts of an assistant's message are joined once, not at each part.
func TestPartsAreJoinedOnce(t *testing.T) {
	const parts, size = 4000, 1000
	whole := func(list []message) bool {
		n := 0
		for _, m := range list {
			n += strings.Count(m.content+m.reasoning, "x")
		}
		return n == parts*size
	}
	for _, what := range []string{"content", "reasoning"} {
		item := fmt.Sprintf(`{"type":"%s","role":"assistant","content":"%s"}`, map[string]string{"content": "message",
			"reasoning": "reasoning"}[what], strings.Repeat("x", size))
		var b responseBody
		if err := parseBody([]byte(`{"input":[`+strings.Repeat(item+",", parts-1)+item+`]}`), &b); err != nil {
			t.Fatal(err)
		}
		var list []message
		got := allocated(func() { list, _ = messagesOf(b.Input.value, &toolset{}) })
		if (len(list) == 1) != (what == "reasoning") || !whole(list) || got > 10*parts*size {
			t.Errorf("%s: %d bytes allocated for %d messages", what, got, len(list))
		}
		block := map[string]string{"content": `{"type":"text","text":"`,
			"reasoning": `{"type":"thinking","thinking":"`}[what] + strings.Repeat("x", size) + `"}`
		var m messagesBody
		if err := parseBody([]byte(`{"messages":[{"role":"assistant","content":[`+strings.Repeat(block+",", parts)+
			`{"type":"text","text":""}]}]}`), &m); err != nil {
			t.Fatal(err)
		}
		got = allocated(func() { list, _ = m.Messages.value[0].messages("", &toolset{}) })
		if len(list) != 1 || !whole(list) || got > 10*parts*size {
			t.Errorf("%s: %d bytes allocated for %d messages of Anthropic's", what, got, len(list))
		}
	}
}

// A namespace that is named several times is allowed once.
func TestAllowedNamespaces(t *testing.T) {
	v := toolset{offered: map[string]offered{}}
	for i := range 100 {
		v.offered[fmt.Sprint("n__", i)] = offered{name: fmt.Sprint(i), namespace: "n"}
	}
	var a allowedTools
	text := `{"mode":"auto","tools":` + filled(`{"type":"namespace","name":"n"}`, 3200) + `}`
	if err := new(decoder).read("", json.RawMessage(text), &a); err != nil {
		t.Fatal(err)
	}
	if err := v.chooseAllowed(&a, ""); err != nil || len(v.only) != 100 {
		t.Errorf("%d of 100 are allowed: %v", len(v.only), err)
	}
}

// The fields of a type are looked up once, not for each value of it.
func TestFieldsAreFoundOnce(t *testing.T) {
	if a, b := fieldsOf(reflect.TypeFor[itemFields]()), fieldsOf(reflect.TypeFor[itemFields]()); a != b {
		t.Error("they are found again")
	}
	var b responseBody
	body := `{"input":[` + strings.Repeat(`{"role":"user","content":"x"},`, 999) + `{"role":"user"}]}`
	if n := testing.AllocsPerRun(3, func() { _ = parseBody([]byte(body), &b) }); n > 20e3 {
		t.Errorf("%v allocations for 1,000 items", n)
	}
}

// Lists and objects are taken apart as encoding/json does.
func FuzzParts(f *testing.F) {
	for _, text := range []string{`[]`, `[ ]`, `{}`, ` [1, "a,]\"" ,{"b":[2 ,{}]}, null]`, `{"a" : 1,"\u0062":"}","a":[2]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw := json.RawMessage(strings.Trim(text, " \t\r\n"))
		list, isList := decode[[]json.RawMessage](raw)
		object, isObject := decode[map[string]json.RawMessage](raw)
		switch {
		case isList:
			if got := slices.Collect(elements(raw)); !slices.EqualFunc(got, list, equalRaw) {
				t.Errorf("%s: %q, want %q", raw, got, list)
			}
		case isObject:
			got := map[string]json.RawMessage{}
			for name, value := range members(raw) {
				got[strings.ToValidUTF8(string(name), "\ufffd")] = value
			}
			for name, value := range object {
				if !equalRaw(got[name], value) || len(got) != len(object) {
					t.Errorf("%s: %q, want %q", raw, got, object)
				}
			}
		}
	})
}

func equalRaw(a, b json.RawMessage) bool { return string(a) == string(b) }
