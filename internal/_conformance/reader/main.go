// Command reader prints what grove makes of a model file, for files.py to compare with other programs.
//
//	reader tokens MODEL [plain] < TEXTS      one JSON string a line in, one list of ids a line out
//	reader logits MODEL OUT < IDS            one list of ids a line in; OUT gets the logits of every position, float32
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tokenizer"
)

func main() {
	run, args := tokens, os.Args[1:]
	if len(args) > 0 && args[0] == "logits" {
		run = logits
	}
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: reader tokens MODEL [plain] < TEXTS, or reader logits MODEL OUT < IDS")
		os.Exit(2)
	}
	if err := run(args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "reader:", err)
		os.Exit(1)
	}
}

// each decodes standard input, a JSON value a line.
func each[T any](do func(T) error) error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var x T
		if err := json.Unmarshal(in.Bytes(), &x); err != nil {
			return err
		}
		if err := do(x); err != nil {
			return err
		}
	}
	return in.Err()
}

func tokens(args []string) error {
	tok, err := open(args[0])
	if err != nil {
		return err
	}
	plain := len(args) > 1 && args[1] == "plain" // names of control tokens are text
	out := bufio.NewWriter(os.Stdout)
	err = each(func(text string) error {
		b, err := json.Marshal(tok.Encode(text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: !plain}))
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", b)
		}
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func open(path string) (*tokenizer.Tokenizer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return tokenizer.FromJSON(path)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tokenizer.FromGGUF(f)
}

func logits(args []string) error {
	m, err := model.Open(args[0], model.Options{})
	if err != nil {
		return err
	}
	defer m.Close()
	file, err := os.Create(args[1])
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	pass := m.NewPass()
	err = each(func(ids []int32) error {
		c := m.NewCache()
		defer c.Free()
		for i := range ids {
			if err := pass.Prefill(context.Background(), c, ids[i:i+1], true); err != nil {
				return err
			}
			if err := binary.Write(out, binary.LittleEndian, pass.Logits(0, 0)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return err
	}
	return file.Close()
}
