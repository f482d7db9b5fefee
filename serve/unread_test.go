package serve_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/serve"
)

// unreadParts are contents of a message with an image or a file, in each protocol, by the content MEDIA of a dialect.
var unreadParts = map[string]map[string][]string{
	"/v1/chat/completions": {`"content":"MEDIA"`: {
		`"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]`,
		`"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]`}},
	"/v1/responses": {`"content":"MEDIA"`: {`"content":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,aGk="}]`},
		`"output":"MEDIA"`: {`"output":[{"type":"input_image","file_id":"f"}]`}},
	"/v1/messages": {`{"text":"MEDIA","type":"text"}`: {`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`},
		`"content":"MEDIA"`: {`"content":[{"type":"image","source":{"type":"url","url":"u"}}]`,
			`"content":[{"type":"image","source":{"type":"file","file_id":"f"},"cache_control":{"type":"ephemeral"}}]`}},
	"/api/chat": {`"content":"MEDIA"`: {`"content":"","images":["aGk="]`}},
}

const imageLine = "[An image was here, which you cannot read: you can read text only.]"

// ask sends a question whose content MEDIA is replaced in the way of a dialect, if any is chosen.
func (q *question) ask(t testing.TB, s *server, d *dialect, way int) (status, prompt int, warnings []string, text string) {
	body := jsonOf(with(d.body(q), "stream", false))
	for content, ways := range unreadParts[d.path] {
		part := strings.ReplaceAll(content, "MEDIA", imageLine)
		if way >= 0 {
			part = ways[way%len(ways)]
		}
		body = strings.ReplaceAll(body, content, part)
	}
	status, header, text := s.send("POST", d.path, body)
	if status == 200 {
		prompt = d.whole(object(t, text)).prompt
	}
	return status, prompt, header.Values("X-Grove-Warning"), text
}

// Images are refused in the user's new message alone. Elsewhere, as in results of tools, a line stands for them, and
// the conversation goes on.
func TestImages(t *testing.T) {
	s := start(t, withHeads(t, grove.Options{ChatTemplate: dialectTemplate}), serve.Options{})
	cases.Check(t, 30, func(rt *rapid.T) {
		q := &question{max: 1}
		images := 0
		refused := false // an image is in the user's new message
		behind := false  // a tool's result is to be answered
		add := func(role, text string) {
			image := text == "" && rapid.Bool().Draw(rt, "image")
			if text == "" {
				text = "words"
			}
			if image {
				text = "MEDIA"
				images++
			}
			switch role {
			case "user":
				refused = image && !behind
			case "result":
				behind = true
				refused = false
			case "assistant", "call":
				behind = false
				refused = false
			}
			q.turns = append(q.turns, turn{role, text})
		}
		if rapid.Bool().Draw(rt, "system") {
			add("system", "Be brief.")
		}
		for range rapid.IntRange(1, 3).Draw(rt, "rounds") {
			if n := len(q.turns); n > 0 && q.turns[n-1].role != "system" && rapid.Bool().Draw(rt, "answered") {
				add("assistant", "Good.")
			}
			add("user", "")
			if rapid.Bool().Draw(rt, "called") {
				add("call", "47")
				add("result", "")
			}
			if rapid.Bool().Draw(rt, "more") {
				add("user", "")
			}
		}
		for _, d := range append(dialects, &chatDialect) {
			way := rapid.IntRange(0, 3).Draw(rt, "way")
			status, prompt, warnings, text := q.ask(t, s, d, way)
			if refused {
				if status != 400 || !strings.Contains(text, "this server reads text only") {
					rt.Fatalf("%s: %v: status %d, %s", d.path, q.turns, status, text)
				}
				continue
			}
			_, want, _, _ := q.ask(t, s, d, -1)
			if status != 200 || prompt != want || len(warnings) != images {
				rt.Fatalf("%s: %v: status %d, %d tokens, as text %d, warnings %q: %s", d.path, q.turns, status, prompt, want,
					warnings, text)
			}
		}
	})
	prefilled := &question{max: 1, turns: []turn{{"user", "MEDIA"}, {"assistant", "It shows"}}}
	for _, d := range []*dialect{&anthropicDialect, &ollamaDialect} { // these continue a last message of the assistant
		if status, _, _, text := prefilled.ask(t, s, d, 0); status != 400 || !strings.Contains(text, "text only") {
			t.Errorf("%s, before the beginning of an answer: status %d, %s", d.path, status, text)
		}
	}
}

// Parts of every kind that is not text have a line of their own, and a warning names the place.
func TestUnreadKinds(t *testing.T) {
	s := withTurns(t, serve.Options{})
	for part, want := range map[string]string{
		`{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}`: "A recording",
		`{"type":"audio","data":"aGk=","mimeType":"audio/wav"}`:               "A recording",
		`{"type":"video_url","video_url":{"url":"u"}}`:                        "A video",
		`{"type":"file","file":{"file_id":"f"}}`:                              "A file",
		`{"type":"input_file","filename":"a.pdf","file_data":"aGk="}`:         "A file",
		`{"type":"image_file","image_file":{"file_id":"f"}}`:                  "An image",
	} {
		_, _, text := s.send("POST", "/tokenize", `{"messages":[{"role":"tool","content":[{"type":"text","text":"a"},`+part+`]}]}`)
		got, _ := s.post("/detokenize", map[string]any{"tokens": object(t, text)["tokens"]})["content"].(string)
		want = "[tool::a\n" + strings.Replace(imageLine, "An image", want, 1) + "]"
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: the prompt is %q, want %q", part, got, want)
		}
		_, header, _ := s.send("POST", "/v1/responses/input_tokens", `{"input":[{"role":"user","content":"x"},`+
			`{"type":"function_call_output","call_id":"c","output":[`+part+`]}]}`)
		if list := header.Values("X-Grove-Warning"); len(list) != 1 || !strings.HasPrefix(list[0], "input[1].output[0].type: ") {
			t.Errorf("%s: warnings %q", part, list)
		}
	}
	for path, body := range map[string]string{
		"messages[0].content[0].content[0].source.type": documentBody(
			`"title":"x","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}`),
		"messages[0].content[0].content[0].source.content[1].type": documentBody(`"source":{"type":"content","content":[` +
			`{"type":"text","text":"x"},{"type":"image"}]}`),
		"messages[0].content[1].source.type": `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"},` +
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}]}]}`,
	} {
		_, header, text := s.send("POST", "/v1/messages/count_tokens", body)
		if list := header.Values("X-Grove-Warning"); !slices.ContainsFunc(list, func(w string) bool {
			return strings.HasPrefix(w, path+": ")
		}) {
			t.Errorf("%s: warnings %q: %s", path, list, text)
		}
	}
	for _, body := range []string{`{"messages":[{"role":"tool","content":[{"type":"txet","text":"a"}]}]}`,
		`{"input":[{"role":"user","content":[{"type":"thinking","thinking":"hm"}]}]}`,
		`{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"thinking","thinking":"hm"}]}]}`} {
		path := "/v1/responses"
		if strings.HasPrefix(body, `{"messages"`) {
			path = "/v1/chat/completions"
		}
		if status, _, text := s.send("POST", path, body); status != 400 {
			t.Errorf("%s: status %d, %s", body, status, text)
		}
	}
}
