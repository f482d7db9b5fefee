// Completion in shells. The scripts ask this program what can follow: grove __complete, with the words of the line.

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
)

type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (CompletionCmd) Help() string {
	return `Prints a script that completes commands, flags, their values, drafters, shapes and file names.

Examples:
    source <(${name} completion bash)                                    in ~/.bashrc
    source <(${name} completion zsh)                                     in ~/.zshrc, after compinit
    ${name} completion fish > ~/.config/fish/completions/${name}.fish`
}

func (cmd *CompletionCmd) Run(p *Program) error {
	_, err := fmt.Fprint(p.Stdout, strings.NewReplacer("_grove", "_"+strings.ReplaceAll(p.Name, "-", "_"), "grove",
		p.Name).Replace(scripts[cmd.Shell]))
	return err
}

// scripts call the program with the words up to the cursor; the last one, which may be empty, is to
// be completed. If the answer is empty they complete file names. Bash does that with its own
// completion, which handles quotes. It splits words at = and :, so its script joins them again.
var scripts = map[string]string{
	"bash": `_grove() {
	local line=${COMP_LINE:0:COMP_POINT} words
	read -ra words <<< "$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	local word=${words[-1]}
	mapfile -t COMPREPLY < <(grove __complete -- "${words[@]:1}" 2> /dev/null)
	[[ ${COMPREPLY[0]} == *[=:,] && ${#COMPREPLY[@]} == 1 ]] && compopt -o nospace
	local cut=${word%"${word##*[=:]}"}
	COMPREPLY=("${COMPREPLY[@]#"$cut"}")
}
complete -o default -F _grove grove
`,
	"zsh": `#compdef grove
_grove() {
	local -a found
	found=("${(@f)$(grove __complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}")
	if [[ -z ${found[1]} ]]; then
		compset -P '--*='
		_files
	elif [[ ${#found} == 1 && ${found[1]} == *[=:,] ]]; then
		compadd -S '' -- $found
	else
		compadd -- $found
	fi
}
compdef _grove grove
`,
	"fish": `function __grove_complete
	set -l words (commandline -opc) (commandline -ct)
	set -l found (grove __complete -- $words[2..] 2> /dev/null)
	if test (count $found) -gt 0
		string join \n -- $found
	else
		set -l flag (string match -r '^--[^=]*=' -- $words[-1])
		for path in (__fish_complete_path (string replace -r '^--[^=]*=' '' -- $words[-1]))
			echo "$flag$path"
		end
	end
end
complete -c grove -f -a '(__grove_complete)'
`,
}

type CompleteCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

func (cmd *CompleteCmd) Run(p *Program, k *kong.Kong) error {
	words := cmd.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, c := range Completions(k.Model, words) {
		fmt.Fprintln(p.Stdout, c)
	}
	return nil
}

// Completions lists the possible completions of the last word; none where a file name may stand.
func Completions(app *kong.Application, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	node, flags := app.Node, slices.Clone(app.Flags)
	var waiting *kong.Flag // the flag whose value the next word is
	var arguments int
	literal := false // after --
	for _, w := range words[:len(words)-1] {
		switch {
		case waiting != nil:
			waiting = nil
		case w == "--":
			literal = true
		case !literal && strings.HasPrefix(w, "-"):
			if f := findFlag(flags, w); f != nil && !f.IsBool() && !strings.Contains(w, "=") {
				waiting = f
			}
		default:
			if c := Child(node, w); c != nil && !literal {
				node, flags = c, append(flags, c.Flags...)
			} else {
				arguments++
			}
		}
	}
	word := words[len(words)-1]
	switch flag, value, joined := strings.Cut(word, "="); {
	case waiting != nil:
		return begin(valuesOf(waiting.Value, word), word)
	case !literal && joined && strings.HasPrefix(word, "--"):
		f := findFlag(flags, flag)
		if f == nil {
			return nil
		}
		var list []string
		for _, v := range begin(valuesOf(f.Value, value), value) {
			list = append(list, flag+"="+v)
		}
		return list
	case !literal && strings.HasPrefix(word, "-"):
		return begin(FlagWords(flags), word)
	case len(node.Children) > 0:
		return begin(childNames(node), word)
	case node.Name == "help":
		return begin(childNames(app.Node), word)
	case arguments < len(node.Positional):
		return begin(valuesOf(node.Positional[arguments], word), word)
	}
	return nil
}

// begin returns the words that begin with a prefix.
func begin(words []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
}

// findFlag returns the flag of a word such as --model, --model=x or -m, or nil if there is none.
func findFlag(flags []*kong.Flag, word string) *kong.Flag {
	name, _, _ := strings.Cut(word, "=")
	for _, f := range flags {
		if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

// FlagWords returns the flags as they are typed.
func FlagWords(flags []*kong.Flag) (list []string) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		list = append(list, "--"+f.Name)
		if f.Tag.Negatable != "" {
			list = append(list, "--no-"+f.Name)
		}
	}
	return list
}

// valuesOf lists the known values of a flag or an argument: none for a file.
func valuesOf(v *kong.Value, word string) []string {
	switch {
	case v.Enum != "":
		return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
	case v.Name == "drafter", v.Name == "name" && v.Flag == nil:
		return drafterWords(word)
	case v.Name == "shape":
		return ShapeNames()
	}
	return nil
}

// drafterWords lists the drafters; after a plus, the modifiers of one; after a colon, the options
// of either, each with the text before it.
func drafterWords(word string) (list []string) {
	plus := strings.LastIndexByte(word, '+')
	before, last := word[:plus+1], word[plus+1:]
	name, options, colon := strings.Cut(last, ":")
	done := options[:strings.LastIndexByte(options, ',')+1]
	add := func(own string, listed []option.Option) {
		switch {
		case !colon:
			list = append(list, before+own)
		case own == name:
			for _, o := range listed {
				list = append(list, before+own+":"+done+o.Key+"=")
			}
		}
	}
	if plus < 0 {
		for _, f := range registry.Families() {
			add(f.Name, f.Listed())
		}
		if !colon {
			list = append(list, registry.Plain, registry.Auto)
		}
		return list
	}
	family, _, _ := registry.Split(word)
	for _, f := range registry.Families() {
		for _, m := range registry.AllModifiers {
			if f.Name == family && slices.Contains(f.Modifiers, m.Name) {
				add(m.Name, m.Listed())
			}
		}
	}
	return list
}
