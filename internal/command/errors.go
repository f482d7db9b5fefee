// The errors that a user reads.

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/speculate/badfield"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitInterrupted = 130 // 128 + SIGINT, as in shells
)

// UsageError is a mistake in the command line that only the command itself can see.
type UsageError struct{ err error }

func (e UsageError) Error() string { return e.err.Error() }
func (e UsageError) Unwrap() error { return e.err }

func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// otherFlags maps flags of llama.cpp and vLLM to grove's.
var otherFlags = map[string]string{
	"ctx-size": "context", "max-model-len": "context", "temp": "temperature",
	"predict": "max-tokens", "n-predict": "max-tokens",
	"repeat-penalty": "repetition-penalty", "repeat-last-n": "penalty-last", "model-draft": "draft-model",
	"api-key": "keys", "api-key-file": "keys", "served-model-name": "alias", "max-num-seqs": "parallel",
	"chat-template": "template", "chat-template-file": "template", "cache-type-k": "kv", "kv-cache-dtype": "kv",
	"allowed-origins": "cors", "ssl-certfile": "tls-cert", "ssl-cert-file": "tls-cert", "ssl-keyfile": "tls-key",
	"ssl-key-file": "tls-key", "-c": "context", "-np": "parallel", "-ctk": "kv",
}

// noFlags maps flags of llama.cpp that grove does not have to advice.
var noFlags = map[string]string{
	"-p": "grove run takes a prompt without a flag", "-cnv": "grove chat talks",
	"-ngl": "grove runs on the processor: leave it out",
}

// nameFlag adds to the error of a wrong command line the command's own flag for another program's.
func nameFlag(k *kong.Context, args []string, err error) error {
	for _, arg := range args {
		if do := noFlags[arg]; do != "" {
			return fmt.Errorf("unknown flag %s: %s", arg, do)
		}
		if name := otherFlags[arg]; hasFlag(k, name) {
			return fmt.Errorf("unknown flag %s: here it is --%s", arg, name)
		}
	}
	rest, unknown := strings.CutPrefix(err.Error(), "unknown flag --")
	name, _, _ := strings.Cut(rest, ",") // before the flags that kong finds similar
	if here := otherFlags[name]; unknown && hasFlag(k, here) {
		return fmt.Errorf("unknown flag --%s: here it is --%s", name, here)
	}
	return err
}

// hasFlag reports whether the command that was typed has a flag.
func hasFlag(k *kong.Context, name string) bool {
	return k != nil && slices.ContainsFunc(k.Flags(), func(f *kong.Flag) bool { return f.Name == name })
}

// ErrFailed ends the command with status 1 after it has said why.
var ErrFailed = errors.New("failed")

// report prints the error, if any, and returns the exit status.
func (p *Program) report(k *kong.Context, err error) int {
	name := p.Name
	if k != nil && k.Selected() != nil {
		name = k.Selected().FullPath()
	}
	var usage UsageError
	var option *grove.OptionError
	var sampling *badfield.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrFailed):
		return ExitFailure
	case errors.As(err, &usage), errors.As(err, &option), errors.As(err, &sampling):
		advice := fmt.Sprintf("Run \"%s --help\" for flags and examples.", name)
		if option != nil && option.Field == "Drafter" {
			advice = "Run \"grove drafters\" for the drafters that can run, \"grove drafters NAME\" for what one needs and its options."
		}
		fmt.Fprintf(p.Stderr, "%s: %s\n%s\n", name, whatIsMissing(k, InFlags(err)), advice)
		return ExitUsage
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(p.Stderr, "%s: interrupted\n", name)
		return ExitInterrupted
	}
	message := err.Error()
	if hasFlag(k, "context") {
		message = strings.Replace(message, "open the model with a larger context", "raise --context", 1)
	}
	fmt.Fprintf(p.Stderr, "%s: %s\n", name, message)
	switch {
	case strings.Contains(err.Error(), ": check "): // it says what to do
	case errors.Is(err, fs.ErrNotExist):
		fmt.Fprintln(p.Stderr, "Check the name. A name without a leading / is relative to the current folder.")
	case errors.Is(err, fs.ErrPermission):
		fmt.Fprintln(p.Stderr, "Check the permissions of the file and of its folder.")
	}
	return ExitFailure
}

// whatIsMissing rewrites kong's message about a command line that ends too early, or has a time without a unit.
func whatIsMissing(k *kong.Context, message string) string {
	rest, ok := strings.CutPrefix(message, "expected ")
	duration, _, isDuration := strings.Cut(message, ": time: ")
	switch {
	case isDuration:
		return duration + ": want a number with a unit, such as 30s, 5m or -1s"
	case k != nil && strings.HasPrefix(message, "unexpected argument ") && k.Selected() != nil && takesModel(k.Selected()):
		return message + ": quote a text of several words, and name a model with -m"
	case !ok || k == nil:
		return message
	case strings.HasPrefix(rest, "one of "):
		node := k.Selected()
		if node == nil {
			node = k.Model.Node
		}
		return "name a command: " + strings.Join(childNames(node), ", ")
	}
	return "missing " + strings.Trim(rest, `"`)
}

// takesModel reports whether a command has -m.
func takesModel(node *kong.Node) bool {
	return slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Short == 'm' })
}

// FlagOf maps fields of the library to the flags that set them.
var FlagOf = map[string]string{
	"Prompt":                     "the prompt",
	"MaxTokens":                  "--max-tokens",
	"Stop":                       "--stop",
	"Drafter":                    "--drafter",
	"Budget":                     "--budget",
	"Accept":                     "--accept",
	"Uncontrolled":               "--uncontrolled",
	"Predict":                    "--predict",
	"IgnoreEnd":                  "--ignore-end",
	"Messages":                   "the message",
	"Sampling.Temperature":       "--temperature",
	"Sampling.TopK":              "--top-k",
	"Sampling.TopP":              "--top-p",
	"Sampling.MinP":              "--min-p",
	"Sampling.RepetitionPenalty": "--repetition-penalty",
	"Sampling.PresencePenalty":   "--presence-penalty",
	"Sampling.FrequencyPenalty":  "--frequency-penalty",
	"Sampling.PenaltyLast":       "--penalty-last",
	"Sampling.LogitBias":         "--logit-bias",
	"Sampling.Seed":              "--seed",
	"Threads":                    "--threads",
	"Context":                    "--context",
	"Draft":                      "--draft-model",
	"Heads":                      "--head",
	"Grammar":                    "--grammar",
	"JSONSchema":                 "--json-schema",
	"Regex":                      "--regex",
	"Adapt":                      "--adapt",
	"Memory":                     "--memory",
	"Learned":                    "--learned",
	"KV":                         "--kv",
	"ChatTemplate":               "--template",
	"Pad":                        "--pad",
	"PadType":                    "--pad-type",
	"PadExperts":                 "--pad-experts",
	"PadUsed":                    "--pad-experts",
	"Parallel":                   "--parallel",
	"Queue":                      "--queue",
	"CacheMemory":                "--cache-memory",
	"CacheDir":                   "--cache-dir",
	"CacheDirSize":               "--cache-dir-size",
}

// InFlags rewrites an error about a field of the library as one about the flag that sets it.
func InFlags(err error) string {
	var option *grove.OptionError
	var sampling *badfield.Error
	switch {
	case errors.As(err, &option):
		field, _, _ := strings.Cut(option.Field, "[") // Messages[0].Content
		return strings.Replace(err.Error(), option.Error(), flagMessage(field, option.Reason), 1)
	case errors.As(err, &sampling):
		return strings.Replace(err.Error(), sampling.Error(), flagMessage("Sampling."+sampling.Field, sampling.Reason), 1)
	}
	return err.Error()
}

// valueFirst matches reasons that begin with the value: "-1: want 0 or more".
var valueFirst = regexp.MustCompile(`^\S+: want `)

func flagMessage(field, reason string) string {
	flag, ok := FlagOf[field]
	if !ok {
		flag = field
	}
	if text, ok := strings.CutPrefix(reason, "drafter "); ok {
		return flag + " " + text // as it was typed, in quotes
	}
	if valueFirst.MatchString(reason) {
		return flag + " " + reason
	}
	return flag + ": " + reason
}
