package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/command"
)

// A folder of models is served: each is loaded when a request names it, with the drafter that the
// manifest names, and unloaded when idle.
func TestServeModels(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.gguf", "b.gguf"} {
		if err := os.Rename(tiny(t), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "grove.json"), []byte(
		`{"models": {"b.gguf": {"drafts": [":a.gguf"], "drafter": "best-first"}}}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for wrong, args := range map[string][]string{
		"is for one model":      {"-m", dir, "--alias", "x"},
		"have the same":         {"-m", dir, "-m", filepath.Join(dir, "a.gguf")},
		"larger --model-memory": {"-m", filepath.Join(dir, "a.gguf"), "--model-memory", "1M"},
		"no model found":        {"-m", t.TempDir()},
		"--model-memory \"x\"":  {"-m", dir, "--model-memory", "x"},
	} {
		if code, _, stderr := runGrove("", append([]string{"serve", "--port", "0"}, args...)...); code == command.ExitOK ||
			!strings.Contains(stderr, wrong) {
			t.Errorf("%q: status %d\n%s", args, code, stderr)
		}
	}
	p := startServe(t, "-m", dir, "--port", "0", "--threads", "1", "--keep-alive", "100ms", "--cache-memory", "64M",
		"--memory", filepath.Join(dir, "texts"), "--learned", filepath.Join(dir, "learned"), "--adapt", filepath.Join(dir,
			"heads"))
	get := func(method, path, body string) (list struct {
		Data []struct {
			ID     string
			Status struct{ Value string }
		}
		Model   string
		Drafter string
		Choices []struct{ Text string }
	}) {
		t.Helper()
		r, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if a.StatusCode != 200 || err != nil {
			t.Fatalf("%s: status %d, %v: %s", path, a.StatusCode, err, text)
		}
		return list
	}
	texts := map[string]string{}
	for _, name := range []string{"a", "b", "a"} {
		c := get("POST", "/v1/completions", `{"model":"`+name+`","prompt":"x","max_tokens":5,"temperature":0}`)
		if c.Model != name || len(c.Choices) != 1 || c.Choices[0].Text == "" || texts[name] != "" &&
			texts[name] != c.Choices[0].Text {
			t.Errorf("%+v", c)
		}
		texts[name] = c.Choices[0].Text
	}
	if s := get("GET", "/status?model=b", ""); s.Model != "b" || s.Drafter != "best-first" {
		t.Errorf("%+v", s)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		list := get("GET", "/v1/models", "").Data
		if len(list) != 2 || list[0].ID != "a" || time.Now().After(end) {
			t.Fatalf("%+v", list)
		}
		if list[0].Status.Value == "unloaded" && list[1].Status.Value == "unloaded" {
			break
		}
	}
	for _, name := range []string{"a", "b"} { // two models cannot keep texts in one folder
		if _, err := os.Stat(filepath.Join(dir, "texts", name)); err != nil {
			t.Error(err)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("%v\n%s", err, p.stderr)
	}
}
