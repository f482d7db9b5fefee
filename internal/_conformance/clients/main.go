// Command clients has programs that people use do a whole task each with grove serve: an agent edits a
// file, a harness scores a task, a benchmark drives load. .ci/clients runs it.
//
// Programs are pinned to versions and installed into a folder from npm and PyPI. Most ask a scripted
// model (script.go), so that the outcome of their task is certain. README.md is the record of the last
// runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	list := flag.Bool("list", false, "list the programs")
	record := flag.Bool("record", false, "write the results to README.md beside this command")
	folder := flag.String("folder", filepath.Join(cache, "grove-clients"), "where programs are installed")
	skip := flag.Bool("skip", false, "programs that cannot be installed are no failure")
	keep := flag.String("keep", "", "folder to keep the tasks' files and the server's logs in")
	patience := flag.Duration("patience", 5*time.Minute, "the most time for an installation, and for a task")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: .ci/clients [flags] [NAME…]: has programs do a task with grove serve; without names, all")
		flag.PrintDefaults()
	}
	flag.Parse()
	chosen, err := choose(flag.Args())
	if err != nil {
		return err
	}
	if *list {
		for _, c := range chosen {
			fmt.Printf("%-16s %-42s %s\n", c.name, strings.Join(c.versions(), " "), c.task)
		}
		return nil
	}
	work := *keep
	if work == "" {
		if work, err = os.MkdirTemp("", "grove-clients-"); err != nil {
			return err
		}
		defer os.RemoveAll(work)
	}
	if work, err = filepath.Abs(work); err != nil {
		return err
	}
	grove, err := buildGrove(ctx, work)
	if err != nil {
		return err
	}
	var failed []error
	for _, c := range chosen {
		begin := time.Now()
		result := "does its task"
		if err := c.do(ctx, *folder, filepath.Join(work, c.name), grove, *patience); err != nil {
			result = "fails"
			if errors.Is(err, errInstall) {
				result = "is not installed"
			}
			if err = fmt.Errorf("%s %s: %w", c.name, result, err); *skip && errors.Is(err, errInstall) {
				fmt.Fprintln(os.Stderr, err)
			} else {
				failed = append(failed, err)
			}
		}
		fmt.Printf("%-16s %s (%.0f s)\n", c.name, result, time.Since(begin).Seconds())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if *record {
			if err := c.note(result); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}

// choose finds programs by name; without names, all.
func choose(names []string) ([]*client, error) {
	if len(names) == 0 {
		return clients, nil
	}
	var chosen []*client
	for _, name := range names {
		i := slices.IndexFunc(clients, func(c *client) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is no program here: --list names them", name)
		}
		chosen = append(chosen, clients[i])
	}
	return chosen, nil
}

// buildGrove builds the command, unless GROVE names one.
func buildGrove(ctx context.Context, dir string) (string, error) {
	if path := os.Getenv("GROVE"); path != "" {
		return filepath.Abs(path)
	}
	path := filepath.Join(dir, "grove")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/grove")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// note puts a program's row into README.md, in the place of its last one.
func (c *client) note(result string) error {
	const path = "clients/README.md"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	row := fmt.Sprintf("| %s | %s | %s | %s, %s |", c.name, strings.Join(c.versions(), ", "), c.task, result,
		time.Now().Format("2 January 2006"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| "+c.name+" |") })
	if i < 0 {
		lines = append(lines, row)
	} else {
		lines[i] = row
	}
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
