package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

type VersionCmd struct{}

func (VersionCmd) Help() string {
	return `Prints the version, the revision, and the kernel level in use.

Example:
    ${name} version --json`
}

func (VersionCmd) Run(p *Program) error {
	v := struct {
		Version  string `json:"version"`
		Revision string `json:"revision,omitempty"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
		CPU      string `json:"cpu"`
		BestCPU  string `json:"best_cpu"`
	}{"", "", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, cpu.Active().String(), cpu.Best().String()}
	v.Version, v.Revision = BuildVersion()
	if p.JSON {
		return p.PrintJSON(v)
	}
	fmt.Fprintf(p.Stdout, "%s %s", p.Name, v.Version)
	if v.Revision != "" {
		fmt.Fprintf(p.Stdout, " (%s)", v.Revision)
	}
	fmt.Fprintf(p.Stdout, "\n%s %s, kernels: %s", v.Go, v.Platform, v.CPU)
	if v.CPU != v.BestCPU {
		fmt.Fprintf(p.Stdout, " (best here: %s)", v.BestCPU)
	}
	fmt.Fprintln(p.Stdout)
	return nil
}

// BuildVersion returns the version that was built, and the revision of its source if it is known.
func BuildVersion() (version, revision string) {
	version = "(devel)"
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	version = cmp.Or(b.Main.Version, version)
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

// PrintJSON writes v as one line.
func (p *Program) PrintJSON(v any) error {
	e := json.NewEncoder(p.Stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
