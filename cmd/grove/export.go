// Heads for other engines.

package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/convert"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/tensor"
)

type exportCmd struct {
	VLLM exportVLLMCmd `cmd:"" name:"vllm" help:"Write a folder with which vLLM serves a target, and a Kubernetes manifest."`
}

func (exportCmd) Help() string {
	return `Writes a draft head that was trained here for another engine.

Examples:
    grove export vllm eagle3.gguf ./speculator --target Qwen/Qwen3-8B`
}

type exportVLLMCmd struct {
	Head     string `arg:"" hub:"" help:"EAGLE-3, P-EAGLE, DFlash, DFlash 2, DSpark or JetSpec head: GGUF file or folder."`
	To       string `arg:"" help:"Folder to write."`
	Target   string `hub:"" required:"" help:"The model that the head drafts for." placeholder:"FILE"`
	Verifier string `help:"Target for vLLM to serve, ORG/REPO or a folder; default: --target, if it is one of these, or the source that its file names." placeholder:"NAME"`
	Tokens   int    `help:"Tokens per draft; 0 means 5 for an EAGLE-3 or P-EAGLE head, and a whole block for others." default:"0" placeholder:"N"`
	Type     string `help:"Type of the matrices: bf16, f16 or f32." enum:"bf16,f16,f32" default:"bf16" placeholder:"TYPE"`
	Image    string `help:"Container image in the manifest (${default})." default:"vllm/vllm-openai:latest" placeholder:"IMAGE"`
}

func (exportVLLMCmd) Help() string {
	return `Writes a draft head in a format that vLLM reads, with a kubernetes.yaml, and prints the command that serves the target
with it. EAGLE-3, P-EAGLE, DFlash, DFlash 2 and DSpark heads get the format of vLLM's speculators. That format has no causal block heads,
so JetSpec heads get the format of DFlash's authors with the field dflash_config.causal, which vLLM reads.

vLLM drafts chains, not trees: the head's most probable sequence of tokens. A head gains less there than in grove.

Examples:
    grove export vllm eagle3.gguf ./speculator --target Qwen/Qwen3-8B
    grove export vllm dflash.gguf ./speculator --target qwen3-8b-q8_0.gguf --verifier Qwen/Qwen3-8B`
}

// chainNote is a warning for users of trees.
const chainNote = "vLLM drafts chains with it, not trees: a draft is the head's most probable sequence of tokens"

// vllmServing says how vLLM is to serve a target with a head.
type vllmServing struct {
	Name, Verifier, Image string
	Method                string
	Tokens                int
	Parallel              bool // one pass gives all tokens
}

// config returns the value of --speculative-config for a head at a path.
func (s *vllmServing) config(path string) string {
	text, _ := json.Marshal(struct { // strings and a number
		Method string `json:"method"`
		Model  string `json:"model"`
		Tokens int    `json:"num_speculative_tokens"`
		One    bool   `json:"parallel_drafting,omitempty"`
	}{s.Method, path, s.Tokens, s.Parallel})
	return string(text)
}

// Mounted returns that value for a head in the container.
func (s *vllmServing) Mounted() string { return s.config("/heads/" + s.Name) }

//go:embed vllm.yaml
var vllmManifest string

func (cmd *exportVLLMCmd) Run(p *command.Program) error {
	s, speculators, err := cmd.serving()
	if err != nil {
		return err
	}
	typ, err := tensor.ParseType(cmd.Type)
	if err != nil {
		return err
	}
	ctx, stop := p.Context()
	defer stop()
	bar := p.Progress("writing", true)
	notes, err := convert.ToHF(ctx, cmd.Head, cmd.To, convert.Options{Type: typ, Target: cmd.Target,
		Speculators: speculators, Verifier: s.Verifier, Progress: bar.Set})
	bar.End()
	if err != nil {
		return err
	}
	manifest := template.Must(template.New("").Parse(vllmManifest))
	path := filepath.Join(cmd.To, "kubernetes.yaml")
	if err = atomicfile.Write(path, func(w io.Writer) error { return manifest.Execute(w, s) }); err != nil {
		return err
	}
	serve := []string{"vllm", "serve", s.Verifier, "--speculative-config", s.config(cmd.To)}
	notes = append(notes, chainNote)
	if p.JSON {
		return p.PrintJSON(map[string]any{"folder": cmd.To, "serve": serve, "method": s.Method, "tokens": s.Tokens,
			"notes": notes})
	}
	for _, n := range notes {
		fmt.Fprintf(p.Stderr, "note: %s\n", n)
	}
	_, err = fmt.Fprintf(p.Stdout, "%s\nvllm serve %s --speculative-config %s\n", cmd.To, shellWord(s.Verifier),
		shellWord(serve[4]))
	return err
}

// notName matches characters that a label of Kubernetes cannot have.
var notName = regexp.MustCompile(`[^a-z0-9]+`)

// serving reads the head; speculators reports which of vLLM's formats it needs.
func (cmd *exportVLLMCmd) serving() (s *vllmServing, speculators bool, err error) {
	if cmd.Tokens < 0 {
		return nil, false, command.Usagef("--tokens %d: want 1 or more, or 0", cmd.Tokens)
	}
	name := notName.ReplaceAllString(strings.ToLower(filepath.Base(filepath.Clean(cmd.To))), "-")
	s = &vllmServing{Name: strings.Trim(name, "-"), Image: cmd.Image, Tokens: cmd.Tokens}
	if s.Name == "" || len(s.Name) > 50 {
		s.Name = "head"
	}
	if s.Verifier, err = headfile.Verifier(cmd.Verifier, cmd.Target); err != nil {
		return nil, false, err
	}
	h, err := heads.Read(registry.Head{Name: cmd.Head})
	if errors.Is(err, headfile.ErrKind) {
		err = fmt.Errorf("%s: want an EAGLE-3, P-EAGLE, DFlash, DFlash 2, DSpark or JetSpec head", cmd.Head)
	}
	if err != nil {
		return nil, false, err
	}
	tokens := 0
	_, speculators = h.Shape.Folders()
	if v, ok := h.Shape.(headfile.VLLM); ok {
		var most int
		s.Method, tokens, most = v.VLLM()
		if most > 0 && cmd.Tokens > most {
			err = command.Usagef("--tokens %d: the head drafts %d at most", cmd.Tokens, most)
		}
	}
	if v, ok := h.Shape.(headfile.Parallel); ok {
		s.Parallel = v.Parallel()
	}
	if s.Method == "" {
		err = fmt.Errorf("%s: vLLM does not run this kind of %s: %s", cmd.Head, h.Shape.Kind().Name, h.Shape.Describe(false))
	}
	s.Tokens = cmp.Or(s.Tokens, tokens)
	return s, speculators, errors.Join(err, h.Close())
}

// shellWord quotes a word for a shell.
func shellWord(s string) string {
	if regexp.MustCompile(`^[\w./:-]+$`).MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
