package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
)

// fieldNames matches words that only a Go program uses: names of several words, and a field
// followed by an error.
var fieldNames = func() *regexp.Regexp {
	var compound, single []string
	for _, v := range []any{grove.Request{}, grove.Options{}, grove.Sampling{}} {
		for i := range reflect.TypeOf(v).NumField() {
			name := reflect.TypeOf(v).Field(i).Name
			if strings.ToLower(name[1:]) != name[1:] {
				compound = append(compound, name)
			} else {
				single = append(single, name)
			}
		}
	}
	return regexp.MustCompile(`\b(` + strings.Join(compound, "|") + `)\b|\b(` + strings.Join(single, "|") +
		`)( is |: )|Messages\[`)
}()

// Every field that a flag can set wrongly has the flag's name for users.
func TestFlagOfFields(t *testing.T) {
	help := must(t, "", "help", "chat") + must(t, "", "help", "run") + must(t, "", "help", "serve")
	inside := map[string]bool{"Progress": true, "DraftGGUF": true, "HeadGGUF": true, "OfferedHeads": true,
		"PredictTokens": true, "Sampling": true,
		"Logprobs": true, "TopLogprobs": true, "PromptLogprobs": true, "Priority": true, "Tenant": true,
		"Tools": true, "Reasoning": true, "Deadline": true, "ReasoningOpen": true, "StopInReasoning": true,
		"ReasoningBudget": true, "Sampling.PenaltyFrom": true}
	for prefix, v := range map[string]any{"": grove.Request{}, " ": grove.Options{}, "Sampling.": grove.Sampling{}} {
		for i := range reflect.TypeOf(v).NumField() {
			if !reflect.TypeOf(v).Field(i).IsExported() {
				continue
			}
			name := strings.TrimSpace(prefix) + reflect.TypeOf(v).Field(i).Name
			flag, ok := command.FlagOf[name]
			if ok == inside[name] {
				t.Errorf("%s: has a name for users: %v", name, ok)
			}
			if strings.HasPrefix(flag, "--") && !strings.Contains(help, flag) {
				t.Errorf("%s is said to be %s, which is no flag of run, chat or serve", name, flag)
			}
		}
	}
}

// Wrong usage is status 2, a failure 1; both say what is wrong and where, and what to do.
func TestBadInput(t *testing.T) {
	model, dir := tiny(t), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	truncated := write("truncated.gguf", string(data[:len(data)*2/3]))
	text := write("text.txt", "no model")
	latin := write("latin.txt", "caf\xe9")
	empty := write("empty", "")
	prompts := write("prompts.jsonl", `{"prompt":"one"}`)
	oddPrompts := write("odd.jsonl", `{"messages":[{"role":"user","content":7}]}`)
	broken := filepath.Join(dir, "broken")
	if err := os.Mkdir(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	write("broken/config.json", `{"model_type":"qwen3",`)
	words := strings.Repeat("word ", 5000)
	for _, c := range []struct {
		args string // split at spaces; ␣ is a space within an argument
		in   string
		code int
		want string // all of these, split at |
	}{
		{"fly", "", 2, "unexpected argument fly|grove --help"},
		{"run --model M --temprature 1 x", "", 2, "--temprature|--temperature|grove run --help"},
		{"run -m M --kv f8 x", "", 2, "--kv|f8|bf16"},
		{"bench cost --committed=-1", "", 2, "--committed|-1"},
		{"run -m M --pad many x", "", 2, "--pad|many|500M"},
		{"run -m M --pad 1000 x", "", 1, "padding to 1000|has"},
		{"run -m M --pad-experts 64 x", "", 2, "--pad-experts|64,4"},
		{"run -m M --pad-experts 4,5 x", "", 1, "5 of them"},
		{"run -m M --pad 100M --pad-type q2_k x", "", 2, "--pad-type|q2_k|bf16"},
		{"run -m M --draft-model " + text + " x", "", 1, "draft model|text.txt"},
		{"run -m M --show forest x", "", 2, "--show|tree"},
		{"run -m M --color pink x", "", 2, "--color|auto"},
		{"run -m M", "", 2, "no prompt|--file"},
		{"run -m M --max-tokens=-3 x", "", 2, "--max-tokens -3: want 0"},
		{"run -m M --context 32", words, 1, "of context and the limit is 32: shorten it, or raise --context"},
		{"serve -m M --ctx-size 5", "", 2, "unknown flag --ctx-size: here it is --context"},
		{"run -m M -p hello", "", 2, "unknown flag -p: grove run takes a prompt without a flag"},
		{"pull -c 5 a/b", "", 2, "unknown flag -c, did you mean"},
		{"run -m M -c 2048 hello", "", 2, "unknown flag -c: here it is --context"},
		{"run -m M -ngl 99 hello", "", 2, "unknown flag -ngl: grove runs on the processor: leave it out"},
		{"serve -m M --api-key x", "", 2, "unknown flag --api-key: here it is --keys"},
		{"run -m M --temp 0 x", "", 2, "unknown flag --temp: here it is --temperature"},
		{"run -m M --api-key x x", "", 2, "unknown flag --api-key"},
		{"run -m M --presence-penalty -2000 x", "", 2, "--presence-penalty -2000: want -1000 to 1000"},
		{"run -m M -n many x", "", 2, "--max-tokens|many"},
		{"run -m M --temperature=-1 x", "", 2, "--temperature -1: want 0 to 100"},
		{"run -m M -t -0.5 x", "", 2, "--temperature -0.5: want 0 to 100"},
		{"run -m M -t NaN x", "", 2, "--temperature NaN: want 0 to 100"},
		{"run -m M --top-p 2 x", "", 2, "--top-p 2: want 0 to 1"},
		{"run -m M --top-k=-2 x", "", 2, "--top-k -2: want 0"},
		{"run -m M --min-p 7 x", "", 2, "--min-p 7: want 0 to 1"},
		{"run -m M --logit-bias 5 x", "", 2, "--logit-bias|ID=BIAS"},
		{"run -m M --logit-bias 99999999=1 x", "", 2, "--logit-bias: token 99999999"},
		{"run -m M --drafter magic x", "", 2, "magic|lookup|plain"},
		{"run -m M --drafter lookup:min=x x", "", 2, "min|x"},
		{"run -m M --budget 1 x", "", 2, "--budget 1: want 2 to 4096"},
		{"run -m M --budget 100000 x", "", 2, "--budget 100000: want 2 to 4096"},
		{"run -m M --threads -1 x", "", 2, "--threads|-1"},
		{"run -m M --context -1 x", "", 2, "--context|-1"},
		{"run -m M --cpu warp x", "", 2, "--cpu|warp|portable"},
		{"run -m M -f " + filepath.Join(dir, "none.txt"), "", 1, "none.txt|no such file|Check the name"},
		{"run -m M -f " + dir, "", 1, "is a folder"},
		{"run -m M -f " + latin, "", 2, "latin.txt|invalid UTF-8|byte 3"},
		{"run -m M -", "\xff", 2, "standard input|invalid UTF-8|byte 0"},
		{"run -m M --predict " + latin + " x", "", 2, "--predict|latin.txt|invalid UTF-8"},
		{"run -m M -", words, 1, "context|1024|shorten"},
		{"run -m M --context 8 -", "a bit more than eight tokens of text", 1, "context|8"},
		{"run -m " + filepath.Join(dir, "none.gguf") + " x", "", 1, "none.gguf|no such file"},
		{"run -m " + truncated + " x", "", 1, "truncated.gguf"},
		{"run -m " + text + " x", "", 1, "text.txt"},
		{"run -m " + empty + " x", "", 1, "empty"},
		{"run -m " + dir + " x", "", 1, "config.json"},
		{"run -m " + broken + " x", "", 1, "config.json"},
		{"chat -m M", "\xff\n", 2, "the message|UTF-8"},
		{"chat -m M", "/usr/bin␣is␣what?\n", 0, "there is no command /usr/bin|with a space"},
		{"chat -m M --context 16 -n 4", strings.Repeat("word ", 50) + "\n", 1, "/reset|/undo|--context"},
		{"run -m M x\xff", "", 2, "argument|invalid UTF-8|byte 1"},
		{"run -m M x y", "", 2, "unexpected argument y|-m"},
		{"run -n 5 M x", "", 2, "unexpected argument x|-m"},
		{"run -m M --learned " + text + " x", "", 2, "--learned|text.txt|folder"},
		{"run -m M --memory " + text + " x", "", 1, "memory: folder " + text + "|name a folder on a local disk"},
		{"convert M " + filepath.Join(dir, "new.gguf"), "", 2, "new.gguf: convert turns a GGUF file into a folder|grove quantize"},
		{"adapt -m M --adapt " + filepath.Join(dir, "none"), "", 2, "--adapt|none|no such folder"},
		{"train eagle -m M --prompts " + oddPrompts + " --dir " + dir, "", 1, "line 1: messages.content is of type number"},
		{"bench spec -m M --suite " + prompts + " --out " + text, "", 1, "--out|text.txt"},
		{"train eagle -m M --prompts nowhere --dir " + dir, "", 1, "--prompts nowhere: no such file|GROVE_DATA"},
		{"train eagle -m M --text " + text + " --answers 8 --dir " + dir, "", 2, "--answers|--text|leave them out"},
		{"train eagle -m M --prompts " + prompts + " --teacher foo --dir " + dir, "", 1, "--teacher \"foo\"|http://"},
		{"train eagle -m M --prompts " + prompts + " --steps -1 --dir " + dir, "", 1, "--steps -1: want 1"},
		{"quantize " + broken + " new.gguf", "", 2, "broken is a folder: grove convert --type q8_0"},
		{"run -m M --json-schema " + write("cut.json", "{") + " x", "", 2, "--json-schema: not JSON: it ends too early"},
		{"train eagle -m M --prompts " + prompts + " --teacher http://127.0.0.1:1 --dir " + dir, "", 1, "127.0.0.1:1|refused"},
		{"serve -m M --port 0 --host=", "", 2, "--host|127.0.0.1"},
		{"serve -m M --port 0 --host 0.0.0.0:80", "", 2, "--host \"0.0.0.0:80\"|--port"},
		{"serve -m M --port 0 --drain=-1s", "", 2, "--drain"},
		{"serve -m M --keep-alive -1", "", 2, `--keep-alive|"-1": want a number with a unit, such as 30s`},
		{"serve -m M --port 0 --drafter magic", "", 2, "--drafter|magic"},
		{"serve -m M --port 0 --parallel=-1", "", 2, "--parallel -1: want 0"},
		{"serve -m M --port 0 --max-n 0", "", 2, "--max-n 0: want 1"},
		{"serve -m M --port 0 --cache-dir-size much", "", 2, "--cache-dir-size|much|4G"},
		{"serve -m M --port 0 --cache-memory much", "", 2, "--cache-memory|much|4G"},
		{"serve -m M --port 0 --max-body 0", "", 2, "--max-body|16M"},
		{"serve -m M --port 70000", "", 2, "--port|70000"},
		{"serve -m M --port 0 --cors page", "", 2, "--cors|page"},
		{"serve -m M --port 0 --cors https://*.example.com", "", 2, "--cors|*.example.com|* for any"},
		{"serve -m M --port 0 --tls-key " + text, "", 2, "--tls-cert|--tls-key"},
		{"serve -m M --port 0 --tls-cert " + text + " --tls-key " + text, "", 1, "--tls-cert|PEM"},
		{"serve -m M --port 0 --keys " + empty, "", 1, "--keys|no key"},
		{"serve -m M --port 0 --keys " + write("keys.txt", "# all\nsecret # of one\n"), "", 1, "keys.txt|on its own line"},
		{"serve -m " + truncated + " --port 0", "", 1, "truncated.gguf"},
		{"chat -m M", words, 1, "context|1024"},
		{"chat -m M --template " + latin, "hello\n", 2, "--template|latin.txt"},
		{"chat -m M --template " + empty, "hello\n", 2, "--template: " + empty + " is empty"},
		{"run -m M --grammar " + empty + " x", "", 2, "--grammar: " + empty + " is empty"},
		{"chat -m M --template " + write("broken.jinja", "{% for m in messages %}"), "hello\n", 2, "--template"},
		{"chat -m M --template " + filepath.Join(dir, "none.jinja"), "hello\n", 1, "none.jinja"},
		{"inspect", "", 2, "missing <file>"},
		{"bench", "", 2, "name a command: cost, spec, adapt, serve, memory"},
		{"--json", "", 2, "name a command: run, chat"},
		{"demo -m M -d magic x", "", 2, "--drafter \"magic\": there is no|grove drafters"},
		{"bench memory plain --prompt none.jsonl", "", 1, "none.jsonl|Check the name"},
		{"inspect " + truncated, "", 1, "truncated.gguf"},
		{"inspect " + text, "", 1, "text.txt|neither a GGUF, a safetensors nor"},
		{"inspect " + empty, "", 1, "is empty"},
		{"inspect " + dir, "", 1, "config.json"},
		{"inspect " + broken, "", 1, "config.json|JSON"},
		{"bench cost --shape tiny-llama3 --committed 9000000000000000000", "", 2, "--committed 9000000000000000000|0 to"},
		{"bench cost --shape tiny-llama3 --prompts 1,9000000000000000000", "", 2, "--prompts 9000000000000000000|1 to"},
		{"bench cost --shape huge", "", 2, "huge|qwen3-0.6b"},
		{"bench cost --type q3", "", 2, "--type|q3"},
		{"bench cost --rows 0", "", 2, "--rows|0"},
		{"bench cost --rounds 0", "", 2, "--rounds|0"},
		{"bench cost --heads all --rows 1", "", 2, "--rows|drafts"},
		{"bench cost --shape eagle3-tiny-llama3 --rows 1", "", 2, "--rows|drafts"},
		{"bench cost --shape eagle3-tiny-llama3 --heads all", "", 2, "--heads|target"},
		{"bench cost --head-type q8_0", "", 2, "--head-type|--heads"},
		{"bench cost --model " + text, "", 1, "text.txt"},
		{"bench serve --max-tokens 1", "", 2, "--max-tokens 1: want 2"},
		{"bench serve --memory " + dir, "", 2, "--memory|GROVE_MEMORY"},
		{"bench spec --seed= --prompts 1", "", 2, "--seed: want"},
		{"bench spec --adapt " + dir, "", 2, "--adapt|+adapt with --learned"},
		{"bench spec --memory " + dir, "", 2, "--memory|@memory"},
		{"bench adapt --adapt " + dir, "", 2, "--adapt|--export"},
		{"bench adapt --rate=-1", "", 2, "--rate -1: want 0"},
		{"train eagle -m M --dir " + dir + " --prompts " + prompts + " --length 1024", "", 2, "--length 1024: want|context"},
		{"train eagle -m M --dir " + dir + " --prompts " + prompts + " --length 5000", "", 2, "--length 5000: want|context"},
		{"demo -n 0", "", 2, "--max-tokens"},
		{"demo -m M -d plain", "", 2, "--drafter"},
		{"eval -m M", "", 2, "--text|--source"},
		{"eval -m M --window 5000 --text " + text, "", 2, "--window 5000: want 2 to the model's 1024"},
		{"eval -m M --stride 5000 --text " + text, "", 2, "--stride 5000: want 1 to the window of 1024"},
		{"eval -m M --limit -1 --text " + text, "", 2, "--limit -1: want 0"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, " M ", " "+model+" "))
		for i := range args {
			if args[i] == "M" {
				args[i] = model
			}
		}
		code, out, err := runGrove(c.in, args...)
		if code != c.code || out != "" {
			t.Errorf("grove %s: status %d, want %d; output %q", c.args, code, c.code, out)
		}
		for _, want := range strings.Split(c.want, "|") {
			if !strings.Contains(err, want) {
				t.Errorf("grove %s: the message does not say %q:\n%s", c.args, want, err)
			}
		}
		if strings.Contains(err, "goroutine ") {
			t.Errorf("grove %s panicked:\n%s", c.args, err)
		}
		if name := fieldNames.FindString(err); name != "" {
			t.Errorf("grove %s: the message names the Go field %q:\n%s", c.args, name, err)
		}
	}
}
