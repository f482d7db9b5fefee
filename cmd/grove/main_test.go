package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// With this variable set the test binary is the command itself, for tests that need a process.
const asCommand = "GROVE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	for _, name := range []string{"GROVE_MODEL", "GROVE_DRAFT_MODEL", "NO_COLOR"} {
		os.Unsetenv(name)
	}
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// runGrove runs grove in this process.
func runGrove(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	defer cpu.Use(cpu.Active())() // --cpu is for the whole process
	code = command.NewProgram(&product, context.Background(), strings.NewReader(stdin), &out, &err).Main(args)
	return code, out.String(), err.String()
}

// must runs the command and wants it to succeed.
func must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	code, out, err := runGrove(stdin, args...)
	if code != 0 {
		t.Fatalf("grove %q: status %d\n%s", args, code, err)
	}
	return out
}

// --json applies to --version too, before or after it.
func TestVersionFlag(t *testing.T) {
	for _, args := range [][]string{{"--version", "--json"}, {"--json", "--version"}, {"--version"}} {
		out := must(t, "", args...)
		if v := map[string]any{}; (json.Unmarshal([]byte(out), &v) == nil) != (len(args) == 2) {
			t.Errorf("grove %v prints %q", args, out)
		}
	}
}

// tiny writes a random model, with the context given in place of its own.
func tiny(t *testing.T, size ...int) string {
	t.Helper()
	s, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	if len(size) > 0 {
		s.Context = size[0]
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if data := tinyFiles[s.Context]; data != nil {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: tensor.Q8_0, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if tinyFiles[s.Context], err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// tinyFiles are files that tiny has made, by the size of their context.
var tinyFiles = map[int][]byte{}

// A variable of the environment that is empty says as little as one that is not there.
func TestEmptyVariables(t *testing.T) {
	for _, name := range strings.Fields("CPU MODEL DRAFT_MODEL HEADS ADAPT LEARNED MEMORY KV DATA") {
		t.Setenv("GROVE_"+name, "")
	}
	must(t, "", "run", "-m", tiny(t), "-n", "1", "x")
}

// lines decodes a line of JSON each.
func lines(t *testing.T, out string) (all []map[string]any) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, v)
	}
	return all
}

// The text is the same with every drafter, from every source of the prompt, on every number of threads.
func TestRun(t *testing.T) {
	model := tiny(t)
	file := filepath.Join(t.TempDir(), "prompt.txt")
	if err := os.WriteFile(file, []byte("one two one two "), 0o644); err != nil {
		t.Fatal(err)
	}
	common := []string{"run", "-m", model, "-n", "24", "-t", "0.9", "--seed", "3"}
	want := must(t, "", append(common, "-d", "plain", "one two one two one")...)
	for _, c := range []struct {
		in   string
		args []string
	}{
		{"", []string{"-d", "lookup", "one two one two one"}},
		{"one two one two one", nil},
		{"one two one two one", []string{"-"}},
		{"", []string{"-f", file, "--budget", "40", "one"}},
		{"", []string{"--threads", "3", "--predict", file, "--stats", "one two one two one"}},
		{"", []string{"--cpu", "portable", "one two one two one"}},
	} {
		if got := must(t, c.in, append(common, c.args...)...); got != want {
			t.Errorf("grove run %q: %q, want %q", c.args, got, want)
		}
	}
}

func TestRunJSON(t *testing.T) {
	model := tiny(t)
	out := lines(t, must(t, "", "run", "-m", model, "-n", "20", "--json", "--stats", "--ignore-end", "one two one two"))
	var text strings.Builder
	tokens := 0
	for _, l := range out[:len(out)-1] {
		text.WriteString(l["text"].(string))
		tokens += len(l["tokens"].([]any))
	}
	last := out[len(out)-1]
	stats := last["stats"].(map[string]any)
	if tokens != 20 || last["done"] != true || last["finish"] != "length" || stats["tokens"] != 20.0 ||
		last["same_tokens"] != true || last["speedup"] == nil {
		t.Errorf("%d tokens, then %v", tokens, last)
	}
	if plain := must(t, "", "run", "-m", model, "-n", "20", "-d", "plain", "--ignore-end",
		"one two one two"); plain != text.String()+"\n" {
		t.Errorf("text %q, as JSON %q", plain, text.String())
	}
}

// A chat answers each line, remembers the conversation until told to forget it, and can take back and repeat an answer.
func TestChat(t *testing.T) {
	model := tiny(t)
	chat := func(in string, args ...string) (answers []string) {
		for _, l := range lines(t, must(t, in, append([]string{"chat", "-m", model, "-n", "12", "--json", "-t",
			"0"}, args...)...)) {
			if l["role"] != "assistant" || l["finish"] == "" {
				t.Errorf("answer %v", l)
			}
			answers = append(answers, l["content"].(string))
		}
		return answers
	}
	a := chat("one\ntwo\n")
	if len(a) != 2 {
		t.Fatalf("two lines got %d answers", len(a))
	}
	if b := chat("two\n"); b[0] == a[1] {
		t.Errorf("the answer to the second line, %q, does not depend on the first", b[0])
	}
	if b := chat("one\nwhat?\n/undo\n\n/nothing\n/help\ntwo\n"); b[2] != a[1] {
		t.Errorf("after /undo the answer is %q, want %q", b[2], a[1])
	}
	if b := chat("two\n/reset\none\r\n/again\n/exit\nmore\n"); len(b) != 3 || b[1] != a[0] || b[2] != a[0] {
		t.Errorf("after /reset, and /again at temperature 0: %q, want %q", b, a[0])
	}
	if b := chat("one\n", "--system", "two"); b[0] == a[0] {
		t.Errorf("a system message changes nothing")
	}
	if b := chat("/system two\none\n/system\none\n"); b[1] != a[0] || b[0] != chat("one\n", "--system", "two")[0] {
		t.Errorf("/system: %q", b)
	}
	template := filepath.Join(t.TempDir(), "plain.jinja")
	if err := os.WriteFile(template, []byte("{{ messages[0].content }}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if b, c := chat("one two\n", "--template", template), must(t, "", "run", "-m", model, "--raw", "-n", "12",
		"one two"); b[0]+"\n" != c {
		t.Errorf("with a template of the text alone: %q, run says %q", b[0], c)
	}
	if text := must(t, "one\ntwo\n", "chat", "-m", model, "-n", "12", "-t", "0"); text != a[0]+"\n"+a[1]+"\n" {
		t.Errorf("as text: %q, as JSON %q", text, a)
	}
}

func TestRunStop(t *testing.T) {
	model := tiny(t)
	text := must(t, "", "run", "-m", model, "-n", "30", "--ignore-end", "abc")
	stop := text[len(text)/2 : len(text)/2+3]
	got := must(t, "", "run", "-m", model, "-n", "30", "--ignore-end", "--json", "--stop", stop, "abc")
	last := lines(t, got)
	if l := last[len(last)-1]; l["finish"] != "stop" || l["stop"] != stop {
		t.Errorf("with --stop %q: %v", stop, l)
	}
}

func TestInspect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.gguf")
	s, err := synth.Lookup("tiny-gptneox")
	if err == nil {
		err = synth.Write(t.Context(), file, s, synth.Options{Type: tensor.F16, Seed: 9})
	}
	if err != nil {
		t.Fatal(err)
	}
	size := float64(fileSize(t, file))
	seen := lines(t, must(t, "", "inspect", file, "--json"))[0]
	if seen["architecture"] != "gptneox" || seen["bytes"] != size || seen["parameters"] == 0.0 {
		t.Errorf("a file of %v bytes: inspect saw %v parameters in %v bytes", size, seen["parameters"], seen["bytes"])
	}
	for _, key := range []string{"format", "metadata", "tensors", "types"} {
		if seen[key] == nil {
			t.Errorf("inspect --json has no %q", key)
		}
	}
	memory, _ := seen["memory"].(map[string]any)
	if over, _ := memory["over_file"].(float64); over < 0.8 || over > 1.1 {
		t.Errorf("inspect --json says of memory %v", seen["memory"])
	}
	text := must(t, "", "inspect", file)
	for _, want := range []string{"weights in memory", "F16 runs as F16", "GGUF v3", "gptneox", "token_embd.weight",
		"600 × 192", "F16", "metadata", "total"} {
		if !strings.Contains(text, want) {
			t.Errorf("inspect does not say %q:\n%s", want, text)
		}
	}
	if short := must(t, "", "inspect", "--no-tensors", file); strings.Contains(short, "600 × 192") {
		t.Errorf("inspect --no-tensors lists tensors:\n%s", short)
	}
}

// A pipe is refused, and not waited for: as a file, and as the configuration of a folder.
func TestInspectPipe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "m.gguf")
	if !testfile.Pipe(file) || !testfile.Pipe(filepath.Join(dir, "config.json")) {
		t.Skip("no named pipe can be made here")
	}
	for _, path := range []string{file, dir} {
		if code, _, said := runGrove("", "inspect", path); code == 0 || !strings.Contains(said, "is not a regular file") {
			t.Errorf("%s: status %d, %s", path, code, said)
		}
	}
}

func TestVersion(t *testing.T) {
	if v := lines(t, must(t, "", "version", "--json"))[0]; v["go"] != runtime.Version() || v["cpu"] == "" {
		t.Errorf("version: %v", v)
	}
}

func TestBenchCost(t *testing.T) {
	if testing.Short() {
		t.Skip("reads half a gigabyte several times")
	}
	r := lines(t, must(t, "", "bench", "cost", "--shape", "tiny-llama2", "--type", "f32", "--rows", "4,2",
		"--prompts", "9", "--rounds", "1", "--json"))[0]
	rows := r["rows"].([]any)
	if len(rows) != 3 || rows[2].(map[string]any)["n"] != 4.0 || r["shape"] != "tiny-llama2" || r["type"] != "f32" {
		t.Errorf("%v", r)
	}
	prompt := r["prompts"].([]any)[0].(map[string]any)
	if ms, speed := prompt["ms"].(float64), prompt["tokens_per_s"].(float64); prompt["n"] != 9.0 || ms <= 0 ||
		math.Abs(ms*speed/9000-1) > 1e-9 {
		t.Errorf("a prompt of 9 tokens: %v", prompt)
	}
	for _, key := range []string{"bandwidth_gbs", "read_share", "peak_gops"} {
		if v, ok := r[key].(float64); !ok || v <= 0 {
			t.Errorf("%s is %v", key, r[key])
		}
	}
	for _, key := range []string{"ms", "ratio", "roof_ms", "over_roof"} {
		if v, ok := rows[1].(map[string]any)[key].(float64); !ok || v <= 0 {
			t.Errorf("%s is %v", key, rows[1])
		}
	}
}

// What is lost on its way out is a failure, whichever command wrote it and in whichever form.
func TestLostOutput(t *testing.T) {
	model := tiny(t)
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte("some text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"eval", "-m", model, "--text", text},
		{"drafters", "-m", model}, {"tokenize", "-m", model, "x"}, {"run", "-m", model, "-n", "3", "x"},
		{"inspect", "-m", model}, {"help", "run"}, {"run", "--help"}, {"--version"}, {}} {
		var err bytes.Buffer
		code := command.NewProgram(&product, t.Context(), strings.NewReader(""), lost{}, &err).Main(args)
		if code != 1 || !strings.Contains(err.String(), errLost.Error()) {
			t.Errorf("%v: status %d: %s", args, code, err.String())
		}
	}
}

var errLost = errors.New("the disk is full")

type lost struct{}

func (lost) Write([]byte) (int, error) { return 0, errLost }

// What was learned is not written over a file that is there.
func TestAdaptExportsToNewFiles(t *testing.T) {
	there := tiny(t)
	code, _, err := runGrove("", "adapt", "-m", there, "--adapt", t.TempDir(), "--export", there)
	if code != 1 || !strings.Contains(err, "--force") {
		t.Errorf("status %d: %s", code, err)
	}
}

// A prompt that does not fit is refused before the demo prints it.
func TestDemoLongPrompt(t *testing.T) {
	code, out, err := runGrove("", "demo", "-m", tiny(t), "-d", "lookup", strings.Repeat("word ", 5000))
	if code != 1 || out != "" || !strings.Contains(err, "--context") {
		t.Errorf("status %d, %.99q: %s", code, out, err)
	}
}

// A line that begins with a space and a slash is a message.
func TestChatTakesSlashes(t *testing.T) {
	out := must(t, " /etc/hosts: what is this?\n", "chat", "-m", tiny(t), "-n", "3", "--json")
	if !strings.Contains(out, `"role":"assistant"`) {
		t.Errorf("%q", out)
	}
}

// A chat reads as many lines as there are, and refuses one that is longer than any prompt.
func TestChatLines(t *testing.T) {
	line := strings.Repeat("x", 1<<20) + "\r\n"
	all := newPlainLines(strings.NewReader(strings.Repeat(line, command.MaxPrompt>>20) + "\nthe last"))
	count := map[string]int{}
	for {
		text, err := all.read(t.Context())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		count[text]++
	}
	if count[line[:1<<20]] != command.MaxPrompt>>20 || count[""] != 1 || count["the last"] != 1 {
		t.Errorf("%d lines of three kinds", len(count))
	}
	long := newPlainLines(strings.NewReader(strings.Repeat("x", command.MaxPrompt+1)))
	if _, err := long.read(t.Context()); err == nil || !strings.Contains(err.Error(), "a line of more than") {
		t.Errorf("a line that is too long: %v", err)
	}
}

// typed is a person who types one message.
type typed struct{ text string }

func (*typed) interactive() bool { return true }

func (y *typed) read(ctx context.Context) (text string, err error) {
	text, y.text = y.text, ""
	if text == "" {
		return "", ctx.Err()
	}
	return text, nil
}

// SIGTERM during an answer ends a chat without a message of its own.
func TestTerminateAnswer(t *testing.T) {
	var stderr bytes.Buffer
	m, err := grove.Open(tiny(t), grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := command.NewProgram(&product, ctx, nil, io.Discard, &stderr)
	c := &chat{p: p, ctx: ctx, in: &typed{"hello"}, session: m.NewSession()}
	if err := c.talk(); !errors.Is(err, context.Canceled) || stderr.Len() > 0 {
		t.Errorf("%v: %s", err, stderr.String())
	}
}
