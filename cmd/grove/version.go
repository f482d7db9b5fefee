package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

type versionCmd struct{}

func (versionCmd) Help() string {
	return `Prints the version, the revision, and the kernel level in use.

Example:
    grove version --json`
}

func (versionCmd) Run(p *program) error {
	v := struct {
		Version  string `json:"version"`
		Revision string `json:"revision,omitempty"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
		CPU      string `json:"cpu"`
		BestCPU  string `json:"best_cpu"`
	}{"", "", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, cpu.Active().String(), cpu.Best().String()}
	v.Version, v.Revision = buildVersion()
	if p.JSON {
		return p.printJSON(v)
	}
	fmt.Fprintf(p.stdout, "grove %s", v.Version)
	if v.Revision != "" {
		fmt.Fprintf(p.stdout, " (%s)", v.Revision)
	}
	fmt.Fprintf(p.stdout, "\n%s %s, kernels: %s", v.Go, v.Platform, v.CPU)
	if v.CPU != v.BestCPU {
		fmt.Fprintf(p.stdout, " (best here: %s)", v.BestCPU)
	}
	fmt.Fprintln(p.stdout)
	return nil
}

// buildVersion is the version that was built, and the revision of its source where it is known.
func buildVersion() (version, revision string) {
	version = "(devel)"
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	if b.Main.Version != "" {
		version = b.Main.Version
	}
	for _, s := range b.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true" && revision != "":
			revision += "+changes"
		}
	}
	return version, revision
}

// printJSON writes v as one line.
func (p *program) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
