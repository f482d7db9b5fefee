package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/hub/catalog"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// fakeHub serves repositories: contents by ORG/REPO and then by file. It returns the number of
// requests for weights.
func fakeHub(t *testing.T, repos map[string]map[string]string, arch string, slow time.Duration) *atomic.Int64 {
	t.Helper()
	weights := new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for repo, files := range repos {
			if r.URL.Path == "/api/models/"+repo+"/revision/main" {
				var list []any
				for name, text := range files {
					sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
					list = append(list, map[string]any{"rfilename": name, "lfs": map[string]any{"sha256": sum, "size": len(text)}})
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"sha": strings.Repeat("a", 40), "siblings": list,
					"gguf": map[string]any{"architecture": arch}})
				return
			}
			if name, ok := strings.CutPrefix(r.URL.Path, "/"+repo+"/resolve/"+strings.Repeat("a", 40)+"/"); ok {
				if strings.HasSuffix(name, ".gguf") || strings.HasSuffix(name, ".safetensors") {
					weights.Add(1)
				}
				if slow > 0 {
					_, _ = w.Write([]byte(files[name][:100]))
					w.(http.Flusher).Flush()
					select {
					case <-time.After(slow):
					case <-r.Context().Done():
					}
				}
				http.ServeContent(w, r, "", time.Time{}, strings.NewReader(files[name]))
				return
			}
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	t.Setenv("HF_ENDPOINT", s.URL)
	t.Setenv("HF_HOME", t.TempDir())
	for _, name := range strings.Fields("HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_TOKEN HF_TOKEN_PATH HF_HUB_OFFLINE TRANSFORMERS_OFFLINE") {
		t.Setenv(name, "")
	}
	return weights
}

// A model that was pulled runs by its name as by its path, wherever a file can be named, and is
// gone when it is removed.
func TestPull(t *testing.T) {
	file := tiny(t)
	gguf, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "folder")
	must(t, "", "convert", file, folder, "--type", "bf16")
	repos := map[string]map[string]string{
		"org/gguf": {"m-Q8_0.gguf": string(gguf), "m-Q9_9.gguf": "x",
			"grove.json": `{"heads": [":head.gguf"], "drafts": ["org/folder"]}`},
		"org/folder": {},
	}
	parts, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		repos["org/folder"][filepath.Base(p)] = string(text)
	}
	repos["org/silent"] = maps.Clone(repos["org/folder"])
	delete(repos["org/silent"], "tokenizer.json")
	fakeHub(t, repos, "qwen3", 0)

	code, out, stderr := runGrove("", "run", "-m", "org/gguf", "x")
	if code != command.ExitFailure || out != "" || !strings.Contains(stderr, "grove pull org/gguf") {
		t.Errorf("status %d, %s%s", code, out, stderr)
	}
	code, out, stderr = runGrove("", "pull", "org/gguf")
	if code != 0 || !strings.Contains(stderr, "grove pull org/gguf --head org/gguf:head.gguf, then add --head org/gguf:head.gguf") ||
		!strings.Contains(stderr, "--draft-model org/folder") {
		t.Errorf("status %d, %s%s", code, out, stderr)
	}
	path := strings.TrimSpace(out)
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, gguf) {
		t.Errorf("%s is another file: %v", path, err)
	}
	var result struct{ Repository, File, Type, Path string }
	if err := json.Unmarshal([]byte(must(t, "", "pull", "org/folder", "--json")), &result); err != nil ||
		result.Type != "safetensors" || result.File != "." {
		t.Errorf("%+v, %v", result, err)
	}
	if _, _, stderr := runGrove("", "pull", "org/silent"); !strings.Contains(stderr, "note: there is no tokenizer.json") {
		t.Errorf("a folder without a tokenizer: %s", stderr)
	}
	must(t, "", "rm", "org/silent")
	tail := []string{"-n", "8", "one two one two"}
	for name, path := range map[string]string{"org/gguf": path, "org/gguf:q8_0": path, "org/gguf:m-Q8_0.gguf": path,
		"org/folder": folder} {
		if got, want := must(t, "", append([]string{"run", "-m", name}, tail...)...), must(t, "",
			append([]string{"run", "-m", path}, tail...)...); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		must(t, "", "inspect", name)
	}
	must(t, "", append([]string{"run", "-m", "org/gguf", "--draft-model", "org/folder", "-d", "linear"}, tail...)...)
	t.Setenv("GROVE_MODEL", "org/gguf")
	must(t, "", append([]string{"run"}, tail...)...)
	if code, _, stderr := runGrove("", "run", "--head", "org/gguf:head.gguf", "x"); code == 0 ||
		!strings.Contains(stderr, "grove pull org/gguf:head.gguf") {
		t.Errorf("status %d: %s", code, stderr)
	}
	if out := must(t, "", "list"); strings.Count(out, "\n") != 3 || !strings.Contains(out, "Q8_0") ||
		!strings.Contains(out, time.Now().Format("2006-")) {
		t.Errorf("list:\n%s", out)
	}
	var entries []map[string]any
	if err := json.Unmarshal([]byte(must(t, "", "list", "--json")), &entries); err != nil || len(entries) != 2 ||
		entries[1]["path"] != path {
		t.Errorf("%v, %v", entries, err)
	}
	if out := must(t, "", "rm", "org/gguf:Q8_0"); !strings.Contains(out, "freed") {
		t.Error(out)
	}
	must(t, "", "rm", "org/folder")
	if out := must(t, "", "list", "--json"); strings.TrimSpace(out) != "[]" {
		t.Error(out)
	}
	for _, args := range [][]string{{"rm", "org/folder"}, {"run", "-m", "org/gguf", "x"}, {"pull", "org/none"},
		{"pull", "org/gguf:Q9_9"}, {"pull", "org/gguf:Q4_0"}} {
		if code, _, stderr := runGrove("", args...); code != command.ExitFailure || stderr == "" {
			t.Errorf("grove %q: status %d: %s", args, code, stderr)
		}
	}
	if code, _, _ := runGrove("", "pull", "./x"); code != command.ExitUsage {
		t.Errorf("status %d", code)
	}
}

// --head fetches a head in addition to a model: the named one, or the first known one that grove
// runs and that has the model's shape.
func TestPullHead(t *testing.T) {
	target := tiny(t)
	shape, err := catalog.ReadModel(target)
	if err != nil {
		t.Fatal(err)
	}
	wide := shape
	wide.Hidden *= 2
	file := func(m model.Config) string {
		c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(1, 3)), "", m, tensor.Q8_0)
		path := filepath.Join(t.TempDir(), "head.gguf")
		writeHead(t, path, &c)
		return path
	}
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	right, wrong := read(file(shape)), read(file(wide))
	fakeHub(t, map[string]map[string]string{
		"org/m": {
			"m-Q8_0.gguf": read(target),
			"grove.json":  `{"heads": ["org/unknown", "org/none", "org/wrong", "org/right", "org/later"]}`,
		},
		"org/alone":   {"m-Q8_0.gguf": read(target)},
		"org/unknown": {"config.json": `{"architectures": ["MLPSpeculator"], "speculators_model_type": "mlp"}`, "model.safetensors": "x"},
		"org/wrong":   {"h-Q8_0.gguf": wrong},
		"org/right":   {"h-Q8_0.gguf": right},
		"org/later":   {"h-Q8_0.gguf": right},
	}, "qwen3", 0)
	for head, want := range map[string]string{"best": "org/right", "org/later": "org/later"} {
		code, out, stderr := runGrove("", "pull", "org/m", "--head", head)
		paths := strings.Split(strings.TrimSpace(out), "\n")
		if code != 0 || len(paths) != 2 || read(paths[0]) != read(target) || read(paths[1]) != right ||
			!strings.Contains(paths[1], strings.ReplaceAll(want, "/", "--")) || !strings.Contains(stderr, "--head "+want) {
			t.Errorf("--head %s: status %d, %s%s", head, code, out, stderr)
		}
		if head == "best" && strings.Count(stderr, " is left out: ") != 3 {
			t.Errorf("--head best leaves out: %s", stderr)
		}
		must(t, "", "run", "-m", "org/m", "--head", want, "-n", "4", "one two")
		var result struct {
			Head string `json:"head"`
			Path string `json:"head_path"`
		}
		said := must(t, "", "pull", "org/m", "--head", head, "--json")
		if err := json.Unmarshal([]byte(said), &result); err != nil || result.Head != want || result.Path != paths[1] {
			t.Errorf("--head %s --json: %s, %v", head, said, err)
		}
	}
	for _, args := range [][]string{{"org/m", "--head", "org/wrong"}, {"org/alone", "--head", "best"},
		{"org/m", "--head", "org/none"}} {
		if code, out, stderr := runGrove("", append([]string{"pull"}, args...)...); code != command.ExitFailure ||
			out != "" || stderr == "" {
			t.Errorf("grove pull %q: status %d, %s%s", args, code, out, stderr)
		}
	}
	if code, _, stderr := runGrove("", "pull", "org/m", "--head", "x"); code != command.ExitUsage {
		t.Errorf("status %d: %s", code, stderr)
	}
}

// For some repositories the hub gives the architecture of the projector next to the model.
func TestPullWithProjector(t *testing.T) {
	data, err := os.ReadFile(tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"m-MTP-Q8_0.gguf": string(data), "mmproj-m-F16.gguf": "x"}
	fakeHub(t, map[string]map[string]string{"org/m": files}, "clip", 0)
	must(t, "", "pull", "org/m")
}

// What grove does not run is refused before its weights are fetched.
func TestPullRefuses(t *testing.T) {
	weights := fakeHub(t, map[string]map[string]string{
		"org/gguf":   {"m-Q8_0.gguf": "x"},
		"org/folder": {"config.json": `{"model_type": "mamba", "architectures": ["MambaForCausalLM"]}`, "model.safetensors": "x"},
		"org/head":   {"config.json": `{"architectures": ["MLPSpeculator"], "speculators_model_type": "mlp"}`, "model.safetensors": "x"},
	}, "mamba", 0)
	for name, want := range map[string]string{"org/gguf": "mamba", "org/folder": "mamba", "org/head": "an MLP speculator"} {
		if code, _, stderr := runGrove("", "pull", name); code != command.ExitFailure || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d: %s", name, code, stderr)
		}
	}
	if n := weights.Load(); n != 0 {
		t.Errorf("%d requests for weights", n)
	}
}

// Ctrl-C ends a fetch with status 130. What came is kept.
func TestPullInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be interrupted there")
	}
	weights := fakeHub(t, map[string]map[string]string{"org/gguf": {"m-Q8_0.gguf": strings.Repeat("text", 1000)}}, "llama",
		time.Hour)
	cmd := exec.Command(os.Args[0], "pull", "org/gguf")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kept := func() int {
		files, _ := filepath.Glob(filepath.Join(os.Getenv("HF_HOME"), "hub", "models--org--gguf", "blobs", "*.incomplete"))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				return int(info.Size())
			}
		}
		return -1
	}
	for begin := time.Now(); (weights.Load() == 0 || kept() < 100) && time.Since(begin) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != command.ExitInterrupted || !strings.Contains(stderr.String(), "is kept") ||
		kept() != 100 {
		t.Errorf("%v, %d bytes are kept: %s", cmd.ProcessState, kept(), stderr.String())
	}
}
