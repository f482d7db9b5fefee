package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/convert"
	"github.com/grovellm/grove/internal/files/recode"
	"github.com/grovellm/grove/tensor"
)

type convertCmd struct {
	From        string `arg:"" hub:"" help:"Hugging Face folder or GGUF file."`
	To          string `arg:"" help:"GGUF file or folder to write."`
	Type        string `help:"Type of the matrices: keep, f32, f16, bf16; in GGUF files also q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1, q4_0, iq4_nl or mxfp4." default:"keep" placeholder:"TYPE"`
	Target      string `hub:"" help:"For a draft head: the model that it drafts for, whose tokenizer and output matrix are added." placeholder:"FILE"`
	Speculators bool   `help:"Write a head in the format of vLLM's speculators, if that has its kind; needs --target."`
	Verifier    string `help:"With --speculators: target for vLLM to serve, ORG/REPO or a folder; default: --target, if it is one of these, or the source that its file names." placeholder:"NAME"`
	Force       bool   `short:"f" help:"Replace an existing file."`
}

func (convertCmd) Help() string {
	return `Converts a Hugging Face folder to a GGUF file, or a GGUF file to a folder, with its tokenizer. It fails
if the converted tokenizer would encode text differently.

It also converts draft heads: JetSpec, DFlash, EAGLE-2, EAGLE-3, P-EAGLE, MTP, SpecBlock and Falcon. With --target, GGUF
files of block heads and EAGLE-3 heads run in llama.cpp (--spec-type draft-dflash, draft-eagle3).

Examples:
    grove convert ./Qwen3-0.6B qwen3-0.6b.gguf --type bf16
    grove convert qwen3-0.6b.gguf ./qwen3-folder
    grove convert ./Qwen3-8B-DFlash dflash.gguf --target ./Qwen3-8B
    grove convert ./EAGLE3-Llama-3.1-8B eagle3.gguf --target ./Llama-3.1-8B --type bf16
    grove convert eagle3.gguf ./speculator --target ./Llama-3.1-8B --speculators`
}

func (cmd *convertCmd) Run(p *command.Program) error {
	info, err := os.Stat(cmd.From)
	if err != nil {
		return err
	}
	if strings.HasSuffix(cmd.From, ".safetensors") {
		return command.Usagef("%s: give the folder of a Hugging Face model, not one of its files", cmd.From)
	}
	f := convert.ToHF
	if info.IsDir() {
		f = convert.ToGGUF
	}
	out, err := os.Stat(cmd.To)
	if !info.IsDir() && (err == nil && !out.IsDir() || strings.HasSuffix(strings.ToLower(cmd.To), ".gguf")) {
		return command.Usagef("%s: convert turns a GGUF file into a folder; to write another GGUF file, use grove quantize", cmd.To)
	}
	if cmd.Speculators && info.IsDir() {
		return command.Usagef("--speculators writes a folder, and %s names a GGUF file: name a folder", cmd.To)
	}
	if cmd.Verifier != "" && !cmd.Speculators {
		return command.Usagef("--verifier needs --speculators, which writes a folder that names its target")
	}
	o := convert.Options{Target: cmd.Target, Speculators: cmd.Speculators, Verifier: cmd.Verifier}
	return rewrite(p, f, cmd.From, cmd.To, cmd.Type, o, cmd.Force)
}

type quantizeCmd struct {
	From  string `arg:"" hub:"" help:"GGUF file to read."`
	To    string `arg:"" help:"GGUF file to write."`
	Type  string `help:"Type of the matrices: f16, bf16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1, q4_0, iq4_nl or mxfp4 (${default})." default:"q8_0" placeholder:"TYPE"`
	Force bool   `short:"f" help:"Replace an existing file."`
}

func (quantizeCmd) Help() string {
	return `Writes a GGUF file with matrices of another type. Norms and biases stay F32.

Bits per weight: q8_0 8.5, q6_k 6.6, q5_1 6, q5_k and q5_0 5.5, q4_1 5, q4_k, q4_0 and iq4_nl 4.5, mxfp4 4.25. With
types smaller than q6_k, a model's output matrix is still q6_k; a draft head's, which only ranks guesses, has the others' type.
Where rows are not a multiple of 256, a K type becomes the next type with blocks of 32, as in llama.cpp's files:
q4_k becomes q5_0, q5_k q5_1, and q6_k (and so the output matrix) q8_0.

Examples:
    grove quantize model-bf16.gguf model-q8_0.gguf
    grove quantize model-bf16.gguf model-q4_k.gguf --type q4_k
    grove quantize heads/eagle/model-f32.gguf eagle-q4_0.gguf --type q4_0`
}

func (cmd *quantizeCmd) Run(p *command.Program) error {
	if info, err := os.Stat(cmd.From); err == nil && info.IsDir() {
		return command.Usagef("%s is a folder: grove convert --type %s writes it as a GGUF file", cmd.From, strings.ToLower(cmd.Type))
	}
	return rewrite(p, convert.Quantize, cmd.From, cmd.To, cmd.Type, convert.Options{}, cmd.Force)
}

type rewriter func(ctx context.Context, from, to string, o convert.Options) (notes []string, err error)

// rewrite runs f, and prints what it wrote.
func rewrite(p *command.Program, f rewriter, from, to, typ string, o convert.Options, force bool) error {
	t, err := fileType(p, typ)
	if err != nil {
		return err
	}
	switch info, err := os.Stat(to); {
	case err == nil && !info.IsDir() && !force:
		return fmt.Errorf("%s already exists: choose another name, or replace it with --force", to)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	ctx, stop := p.Context()
	defer stop()
	bar := p.Progress("writing", true)
	o.Type, o.Progress = t, bar.Set
	notes, err := f(ctx, from, to, o)
	bar.End()
	if err != nil {
		return err
	}
	if p.JSON {
		if t != convert.Keep { // of a mixture, the main type
			typ = t.String()
		}
		return p.PrintJSON(map[string]any{"from": from, "to": to, "type": strings.ToLower(typ),
			"notes": append([]string{}, notes...)})
	}
	for _, n := range notes {
		fmt.Fprintf(p.Stderr, "note: %s\n", n)
	}
	fmt.Fprintln(p.Stdout, to)
	return nil
}

// mixtures matches llama.cpp's names for files whose matrices have several types, mostly the first.
var mixtures = regexp.MustCompile(`(?i)^(q[456]_k)_[sml]$`)

// fileType reads --type. A mixture of llama.cpp's is written as its main type, and a note says so.
func fileType(p *command.Program, name string) (tensor.Type, error) {
	if strings.EqualFold(name, "keep") {
		return convert.Keep, nil
	}
	if m := mixtures.FindStringSubmatch(name); m != nil {
		fmt.Fprintf(p.Stderr, "note: %s is a mixture of types in llama.cpp's files; grove writes %s, with an output matrix of q6_k\n",
			strings.ToLower(name), strings.ToLower(m[1]))
		name = m[1]
	}
	t, err := tensor.ParseType(name)
	if err != nil || recode.CheckWritable(t) != nil {
		return t, command.Usagef("--type %q: want keep, f32, f16, bf16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1, q4_0, iq4_nl or mxfp4", name)
	}
	return t, nil
}
