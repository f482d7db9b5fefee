package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/grovellm/grove/internal/hub"
)

// modelArgument allows both ways to name a model: a file directly after a command that has -m, and
// takes no file as its first argument, is its model; and -m names the first argument of a command
// whose first argument is a model. It returns the arguments in the form that the command takes.
func modelArgument(parser *kong.Kong, args []string) []string {
	trace, err := kong.Trace(parser, args)
	if err != nil || trace.Selected() == nil {
		return args
	}
	node, from := trace.Selected(), 0
	for _, name := range strings.Fields(node.FullPath())[1:] {
		if i := slices.Index(args[from:], name); i >= 0 {
			from += i + 1
		}
	}
	end := len(args)
	if i := slices.Index(args[from:], "--"); i >= 0 {
		end = from + i
	}
	flag := slices.IndexFunc(args[from:end], func(a string) bool {
		return a == "-m" || a == "--model" || strings.HasPrefix(a, "--model=")
	}) + from
	hasFlag := takesModel(node)
	switch {
	case hasFlag && flag < from && from < end && (len(node.Positional) == 0 || !node.Positional[0].Required) &&
		isModel(args[from]):
		return slices.Insert(slices.Clone(args), from, "-m")
	case hasFlag || flag < from || len(node.Positional) == 0 || !node.Positional[0].Tag.Has("hub"):
		return args
	}
	name, used := strings.TrimPrefix(args[flag], "--model="), 1
	if name == args[flag] {
		if flag+1 == end {
			return args
		}
		name, used = args[flag+1], 2
	}
	return slices.Insert(slices.Delete(slices.Clone(args), flag, flag+used), from, name)
}

// isModel reports whether a text is the path of a GGUF file, existing or not, of a folder with a
// model, or the name of a model in the hub's cache.
func isModel(path string) bool {
	if name, ok := hub.ParseName(path); ok {
		if c, err := hub.FromEnv(); err == nil {
			if _, err := c.Find(name); err == nil {
				return true
			}
		}
	}
	if strings.HasSuffix(path, ".gguf") && !strings.ContainsAny(path, " \n") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "config.json"))
	return err == nil
}
