package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// client is a program with a task.
type client struct {
	name   string
	npm    []string // packages to install, with versions
	pypi   []string
	folder string // where they are installed, if not under the program's name: programs share some
	torch  bool   // it needs torch, which takes gigabytes
	task   string
	model  func(s *session) []answer // what the scripted model says; nil: grove's own model answers
	// of the scripted model; empty: withTools. Of grove's own: a file; empty: template.jinja
	template string
	flags    []string // of grove serve
	run      func(s *session) error
}

func (c *client) versions() []string { return append(c.npm[:len(c.npm):len(c.npm)], c.pypi...) }

// session is a run of a client's task.
type session struct {
	context.Context
	dir      string // where the program works: empty at first, and its home
	programs string // where its packages are
	url      string // of grove serve
}

// errInstall says that packages could not be installed.
var errInstall = errors.New("its packages cannot be installed")

// do installs a client, serves its model and runs its task.
func (c *client) do(ctx context.Context, folder, dir, grove string, patience time.Duration) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	s := &session{Context: ctx, dir: filepath.Join(dir, "home"), programs: filepath.Join(folder, c.name)}
	if c.folder != "" {
		s.programs = filepath.Join(folder, c.folder)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	installing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.install(installing, s.programs, filepath.Join(folder, "uv")); err != nil {
		return fmt.Errorf("%w: %w", errInstall, err)
	}
	running, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.Context = running
	args := append([]string{"serve", "--port", "0", "--log-prompts"}, c.flags...)
	if c.model != nil {
		path := filepath.Join(dir, "scripted.gguf")
		if err := writeModel(path, cmp.Or(c.template, withTools), c.model(s), 1<<17); err != nil {
			return err
		}
		args = append(args, "-m", path)
	} else {
		args = append(args, "--template", cmp.Or(c.template, "template.jinja"))
	}
	stop, err := s.serve(grove, args, filepath.Join(dir, "server.log"))
	if err != nil {
		return err
	}
	defer stop()
	return c.run(s)
}

// install puts packages into a folder, unless they are there.
func (c *client) install(ctx context.Context, folder, uv string) error {
	if len(c.npm)+len(c.pypi) == 0 {
		return nil
	}
	marker := filepath.Join(folder, "installed")
	want := strings.Join(c.versions(), "\n")
	if have, err := os.ReadFile(marker); err == nil && string(have) == want {
		return nil
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	steps := [][]string{}
	if len(c.npm) > 0 {
		// Some packages fetch their program in a script of theirs, which new versions of npm do not run.
		steps = append(steps, append([]string{"npm", "install", "--no-audit", "--no-fund", "--prefix", folder}, c.npm...))
		for _, script := range []string{"@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs"} {
			steps = append(steps, []string{"sh", "-c", `if [ -f "$0" ]; then node "$0"; fi`,
				filepath.Join(folder, "node_modules", script)})
		}
	}
	if len(c.pypi) > 0 {
		if _, err := os.Stat(filepath.Join(uv, "bin", "uv")); err != nil {
			steps = append(steps, []string{"python3", "-m", "venv", uv}, []string{filepath.Join(uv, "bin", "pip"),
				"install", "-q", uvVersion})
		}
		without := filepath.Join(folder, "without.txt")
		var left string
		if !c.torch { // some name it among their packages and do not need it
			left = "torch; sys_platform == 'none'\n"
		}
		if err := os.WriteFile(without, []byte(left), 0o644); err != nil {
			return err
		}
		tool := filepath.Join(uv, "bin", "uv")
		python := filepath.Join(folder, "venv", "bin", "python")
		steps = append(steps, []string{tool, "venv", "-q", filepath.Join(folder, "venv")},
			append([]string{tool, "pip", "install", "-q", "--python", python, "--override", without}, c.pypi...))
	}
	for _, step := range steps {
		if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	return os.WriteFile(marker, []byte(want), 0o644)
}

// uvVersion is what installs packages of Python.
const uvVersion = "uv==0.13.9"

// listens finds the server's address.
var listens = regexp.MustCompile(`http://\S+`)

// serve starts grove serve, and waits until it answers.
func (s *session) serve(grove string, args []string, log string) (stop func(), err error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	server := exec.Command(grove, args...)
	server.Stderr = f
	out, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = f.Close()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		s.url = listens.FindString(lines.Text())
		if s.url != "" {
			return stop, nil
		}
	}
	stop()
	text, _ := os.ReadFile(log)
	return nil, fmt.Errorf("grove serve does not start:\n%s", text)
}

// do runs a program of the client in its folder, and returns what it printed.
func (s *session) do(env []string, name string, args ...string) (string, error) {
	path := name
	for _, dir := range []string{"node_modules/.bin", "venv/bin"} {
		if candidate := filepath.Join(s.programs, dir, name); exists(candidate) {
			path = candidate
		}
	}
	program := exec.CommandContext(s, path, args...)
	program.Dir = s.dir
	program.Env = append([]string{"PATH=" + filepath.Join(s.programs, "node_modules/.bin") + ":" + os.Getenv("PATH"),
		"HOME=" + s.dir, "LANG=C.UTF-8", "TERM=dumb", "CI=1", "GROVE_URL=" + s.url}, env...)
	program.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	program.Stdout = &out
	program.Stderr = &out
	err := program.Run()
	if s.Err() != nil {
		err = s.Err()
	}
	if err != nil {
		last := out.Bytes()[max(0, out.Len()-mostShown):]
		return out.String(), fmt.Errorf("%s: %w\n%s", name, err, last)
	}
	return out.String(), nil
}

// mostShown bounds what an error shows of what a program printed.
const mostShown = 4000

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// program runs a copy of a small program of programs/.
func (s *session) program(file string, args ...string) (string, error) {
	if err := os.CopyFS(filepath.Join(s.dir, "..", "programs"), os.DirFS("clients/programs")); err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, "..", "programs", file)
	interpreter := "node"
	if strings.HasSuffix(file, ".py") {
		interpreter = "python"
	} else if err := os.Symlink(filepath.Join(s.programs, "node_modules"),
		filepath.Join(s.dir, "..", "node_modules")); err != nil {
		return "", err
	}
	return s.do(nil, interpreter, append([]string{path}, args...)...)
}

// write puts a file into the folder in which the program works.
func (s *session) write(name, text string) error {
	path := filepath.Join(s.dir, name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
}

// wants fails unless the file has the text, and says what the program printed.
func (s *session) wants(name, text, printed string) error {
	have, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil || string(have) != text {
		return fmt.Errorf("%s is %q (%v), want %q; the program printed:\n%s", name, have, err, text, printed)
	}
	return nil
}

// wantsPrinted fails unless the program printed the text.
func wantsPrinted(printed, text string) error {
	if !strings.Contains(printed, text) {
		return fmt.Errorf("it does not print %q:\n%s", text, printed)
	}
	return nil
}
