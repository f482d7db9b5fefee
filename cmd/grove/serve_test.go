package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/testing/testfile"
)

// process is grove serve in a process of its own.
type process struct {
	*exec.Cmd
	url    string
	stderr *strings.Builder // to be read after Wait
}

// startServe starts grove serve, and waits until it is ready.
func startServe(t *testing.T, args ...string) *process {
	t.Helper()
	return startServeWith(t, nil, args...)
}

// startServeWith starts grove serve with a log of its own; nil: process.stderr is it.
func startServeWith(t *testing.T, log *os.File, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], append([]string{"serve"}, args...)...), stderr: &strings.Builder{}}
	p.Env = append(os.Environ(), asCommand+"=1")
	p.Stderr = p.stderr
	if log != nil {
		p.Stderr = log
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, p.url, _ = strings.Cut(strings.TrimSpace(line), " on ")
	if a, err := http.Get(p.url + "/readyz"); err != nil || a.StatusCode != 200 {
		t.Fatal(a, err)
	}
	return p
}

// whole reads an answer to its end.
func whole(t *testing.T) func(a *http.Response, err error) (status int, text string) {
	return func(a *http.Response, err error) (int, string) {
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(text)
	}
}

// stream starts an answer of that many tokens, and returns it after its first line.
func (p *process) stream(t *testing.T, tokens int) *bufio.Reader {
	t.Helper()
	body := fmt.Sprintf(`{"prompt":"x","max_tokens":%d,"ignore_eos":true,"stream":true,"temperature":0}`, tokens)
	a, err := http.Post(p.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil || a.StatusCode != 200 {
		t.Fatal(a, err)
	}
	t.Cleanup(func() { a.Body.Close() })
	r := bufio.NewReader(a.Body)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return r
}

// SIGTERM lets requests end, a second signal does not, and after SIGKILL the server starts again on its port.
func TestServe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be interrupted there")
	}
	model := tiny(t, 1<<17)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	args := []string{"-m", model, "--port", port, "--threads", "1", "--drain", "1m"}

	p := startServe(t, args...)
	if p.url != "http://"+address {
		t.Errorf("it says %s, want %s", p.url, address)
	}
	if code, _, stderr := runGrove("", "serve", "-m", model, "--port", port); code != command.ExitFailure ||
		!strings.Contains(stderr, "--port") {
		t.Errorf("a second server on the port: status %d\n%s", code, stderr)
	}
	p.stream(t, 100000)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()

	p = startServe(t, args...)
	answer := p.stream(t, 400)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(answer); err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("at SIGTERM the answer ends with %q, %v", rest[max(0, len(rest)-100):], err)
	}
	if err := p.Wait(); err != nil || !strings.Contains(p.stderr.String(), "tokens=400") {
		t.Errorf("%v\n%s", err, p.stderr)
	}

	p = startServe(t, args...)
	answer = p.stream(t, 100000)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		for a := (*http.Response)(nil); s == os.Interrupt && (a == nil || a.StatusCode == 200); { // until it drains
			if a, err = http.Get(p.url + "/readyz"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rest, err := io.ReadAll(answer); err != nil || !strings.Contains(string(rest[max(0, len(rest)-300):]),
		"shutting_down") {
		t.Errorf("at the second signal the answer ends with %q, %v", rest[max(0, len(rest)-300):], err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("%v\n%s", err, p.stderr)
	}
}

// SIGTERM ends the server while its model loads, as it does later.
func TestServeEndsWhileLoading(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be interrupted there")
	}
	c := exec.Command(os.Args[0], "serve", "--port", "0", "--threads", "1", "--pad", "300M", "--pad-type", "bf16")
	c.Env = append(os.Environ(), asCommand+"=1")
	log, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	lines := bufio.NewReader(log)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "msg=loading") {
		t.Fatal(line, err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err := errors.Join(err, c.Wait()); err != nil || strings.Contains(string(rest), "grove serve:") {
		t.Errorf("%v\n%s", err, rest)
	}
}

// Keys come from a file, without its comments, and prompts are not in the log.
func TestServeKeys(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	long := strings.Repeat("k", 1<<17)
	if err := os.WriteFile(keys, []byte("\ufefffirst-key\n# keys\n"+long+"\n  secret-key  \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startServe(t, "-m", tiny(t), "--port", "0", "--keys", keys, "--alias", "some/model")
	for key, want := range map[string]int{"": 401, "# keys": 401, "first-key": 200, "secret-key": 200} {
		r, err := http.NewRequest("POST", p.url+"/v1/completions", strings.NewReader(`{"prompt":"a prompt","max_tokens":2}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != want || want == 200 != strings.Contains(string(text), "some/model") {
			t.Errorf("key %q: status %d, %s", key, a.StatusCode, text)
		}
	}
	if p.Process.Signal(os.Interrupt) != nil { // Windows cannot
		_ = p.Process.Kill()
	}
	_ = p.Wait()
	if log := p.stderr.String(); strings.Contains(log, "secret") || strings.Contains(log, "a prompt") ||
		!strings.Contains(log, "tenant=key-") {
		t.Error(log)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1500": 1500, "16M": 16 << 20, "1.5g": 3 << 29, "4GB": 4 << 30,
		"7k": 7 << 10, "": -1, "-1": -1, "M": -1, "1e99": -1, "many": -1, "NaN": -1} {
		if got, err := parseSize(text); err == nil && got != want || err != nil && want >= 0 {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
}

// A server whose head learns is stopped once, and then killed while clients ask, at random moments.
// It starts again, gives the same texts, and has what its head learned before.
func TestServeKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it opens the embedded model three times")
	}
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be interrupted there")
	}
	learned, queries := t.TempDir(), 1
	args := []string{"--port", "0", "--threads", "1", "--pad", "40M", "--drafter", "eagle3", "--adapt", learned,
		"--cache-memory", "64M"}
	texts := make([]string, 6) // of the first server, by client
	var rng = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for kill := range 3 {
		p := startServe(t, args...)
		ask := func(client int) (string, error) {
			body := fmt.Sprintf(`{"prompt":"func f%d(","max_tokens":48,"ignore_eos":true,"temperature":%d,"seed":7}`, client, client%2)
			a, err := http.Post(p.url+"/v1/completions", "application/json", strings.NewReader(body))
			if err != nil {
				return "", err
			}
			defer a.Body.Close()
			var answer struct{ Choices []struct{ Text string } }
			if err := json.NewDecoder(a.Body).Decode(&answer); err != nil || len(answer.Choices) != 1 {
				return "", fmt.Errorf("status %d: %v", a.StatusCode, err)
			}
			return answer.Choices[0].Text, nil
		}
		var first, all sync.WaitGroup // first: every client had an answer
		for client := range texts {
			first.Add(1)
			all.Go(func() {
				got, err := ask(client)
				if kill == 0 {
					texts[client] = got
				}
				if err != nil || got == "" || got != texts[client] {
					t.Errorf("server %d, client %d: %q, %v; the first server gave %q", kill, client, got, err, texts[client])
				}
				for first.Done(); err == nil; {
					_, err = ask(client)
				}
			})
		}
		first.Wait()
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		end := os.Kill
		if kill == 0 {
			end = syscall.SIGTERM
		}
		if err := p.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		_ = p.Wait()
		code, out, stderr := runGrove("", "adapt", "--adapt", learned, "--drafter", "eagle3", "--json")
		var stats struct{ Queries int }
		if err := json.Unmarshal([]byte(out), &stats); code != 0 || err != nil || stats.Queries < queries {
			t.Errorf("after kill %d: status %d, %v, %d queries, before it %d\n%s%s", kill, code, err, stats.Queries,
				queries, out, stderr)
		}
		queries = max(queries, stats.Queries)
	}
}

// The server outlives the reader of its log, such as tee or a journal that is restarted.
func TestServeLogIsClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := startServeWith(t, w, "-m", tiny(t), "--port", "0", "--threads", "1")
	if err := errors.Join(w.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if status, text := whole(t)(http.Get(p.url + "/v1/models")); status != 200 {
			t.Errorf("%d %s", status, text)
		}
	}
}

// An empty name, as of a variable that a compose file sets to nothing, names no model.
func TestServeEmptyVariable(t *testing.T) {
	p := startServe(t, "-m", "", "--port", "0", "--threads", "1")
	if status, text := whole(t)(http.Get(p.url + "/v1/models/grove")); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// A client can fetch a model, and then use it, if the server allows that.
func TestServePull(t *testing.T) {
	data, err := os.ReadFile(tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	fakeHub(t, map[string]map[string]string{"org/gguf": {"m-Q8_0.gguf": string(data)}}, "qwen3", 0)
	template := filepath.Join(t.TempDir(), "template")
	testfile.Write(t, template, []byte("own {{ messages[0].content }}"))
	for _, allowed := range []bool{false, true} {
		args := []string{"-m", tiny(t), "--alias", "first", "--port", "0", "--threads", "1", "--template", template}
		if allowed {
			args = append(args, "--allow-pull")
		}
		p := startServe(t, args...)
		post := func(path, body string) (int, string) {
			return whole(t)(http.Post(p.url+path, "application/json", strings.NewReader(body)))
		}
		status, text := post("/api/pull", `{"model":"hf.co/org/gguf:latest"}`)
		if !allowed {
			if status != http.StatusNotImplemented || !strings.Contains(text, "--allow-pull") {
				t.Errorf("not allowed: %d %s", status, text)
			}
			continue
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if status != 200 || !strings.Contains(lines[0], `"pulling manifest"`) || lines[len(lines)-1] != `{"status":"success"}` {
			t.Errorf("%d %s", status, text)
		}
		if status, text := post("/v1/completions",
			`{"model":"hf.co/org/gguf:latest","prompt":"one two","max_tokens":3}`); status != 200 {
			t.Errorf("the model that was fetched: %d %s", status, text)
		}
		for name, own := range map[string]bool{"first": true, "hf.co/org/gguf": false} {
			if status, text := whole(t)(http.Get(p.url + "/props?model=" + name)); status != 200 ||
				strings.Contains(text, "own {{ messages[0].content }}") != own {
				t.Errorf("%s: %d, with the template of the flag: want %v: %s", name, status, own, text)
			}
		}
		if status, text := post("/api/pull", `{"model":"org/none","stream":false}`); status != http.StatusBadGateway {
			t.Errorf("a model that is not there: %d %s", status, text)
		}
	}
}

// The figures of a fresh server count only requests, not its own trials; and data that cannot be
// kept in files is logged with the model's name.
func TestServeFigures(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a folder in use cannot be removed there")
	}
	dir := filepath.Join(t.TempDir(), "cache")
	p := startServe(t, "-m", tiny(t), "--alias", "its-name", "--port", "0", "--threads", "1", "--cache-dir", dir,
		"--drafter", "lookup")
	figures := func() string {
		_, text := whole(t)(http.Get(p.url + "/metrics"))
		return text
	}
	want := func(finished, generated, prompt int) {
		all := figures()
		for name, n := range map[string]int{"generations_finished": finished, "generated_tokens": generated,
			"prompt_tokens": prompt} {
			if line := fmt.Sprintf("\ngrove_%s_total{model=\"its-name\"} %d\n", name, n); !strings.Contains(all, line) {
				t.Errorf("no %q in the metrics", line)
			}
		}
	}
	want(0, 0, 0)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	const read = 300
	body := `{"prompt":[` + strings.Repeat("1,", read-1) + `2],"max_tokens":0,"echo":true}`
	if a, err := http.Post(p.url+"/v1/completions", "application/json", strings.NewReader(body)); err != nil ||
		a.StatusCode != 200 {
		t.Fatal(a, err)
	}
	want(1, 0, read)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	for line := range strings.Lines(p.stderr.String()) {
		if strings.Contains(line, "level=ERROR") && strings.Contains(line, `msg="a part of the engine failed"`) &&
			strings.Contains(line, "model=its-name") && strings.Contains(line, dir) {
			return
		}
	}
	t.Errorf("no error of the files in\n%s", p.stderr)
}
