package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
)

type chatCmd struct {
	command.ModelFlags
	command.GenerateFlags `kong:"embed,set='maxtokens=1024',set='temperature=0.7'"`

	System   string `help:"Start with this system message." placeholder:"TEXT"`
	Template string `help:"File with a Jinja chat template, in place of the model's." placeholder:"FILE"`
	Stats    bool   `help:"Print statistics after each answer."`
}

func (chatCmd) Help() string {
	return `Chats with a model through its chat template. The conversation stays in the cache, so only new text is processed.
If standard input is not a terminal, each of its lines is a turn.

Without -m on a terminal, it offers to fetch a small published model. If none is fetched, grove's own small model answers.
The only chats that it has seen are grade-school problems: ask it one.

Ctrl-C stops an answer. At the prompt, Ctrl-D or Ctrl-C twice ends the chat. Commands in the chat:
    /help            list these commands
    /reset           forget the conversation
    /undo            remove the last turn
    /again           answer the last turn again, with another seed
    /system TEXT     start over with this system message
    /stats           turn statistics after each answer on or off
    /exit            leave

Examples:
    grove chat -t 0
    grove chat -m qwen3-0.6b-q8_0.gguf
    grove chat -m FILE --system "Answer in one sentence." -t 0
    printf 'Hello!\nAnd in French?\n' | grove chat -m FILE --json`
}

func (cmd *chatCmd) Run(p *command.Program) error {
	request, err := cmd.Request()
	if err != nil {
		return err
	}
	template, err := command.ReadFlag("--template", cmd.Template)
	if err != nil {
		return err
	}
	if cmd.Model == "" {
		switch cmd.Model, err = offerModel(p); {
		case errors.Is(err, io.EOF): // Ctrl-C and Ctrl-D also end up here
			return nil
		case err != nil:
			return err
		}
	}
	m, err := cmd.OpenWith(p, grove.Options{ChatTemplate: template})
	if err != nil {
		return err
	}
	defer p.Close(m)
	layout, err := m.Layout() // refuse a model that cannot chat now, not after the first question
	if err != nil {
		return err
	}
	p.Logf("chat layout: %s", layout.About())
	in := openLines(p, "> ", "Press Ctrl-C again, or Ctrl-D, to leave.")
	ctx, stop := command.EndedBy(p.Base, syscall.SIGTERM)
	defer stop()
	c := &chat{p: p, ctx: ctx, in: in, name: command.ModelName(m, cmd.Model), session: m.NewSession(),
		request: request, stats: cmd.Stats}
	defer c.session.Close()
	c.reset(cmd.System)
	if in.interactive() {
		fmt.Fprintf(p.Stderr, "%s, context %d tokens, %s.\n/help lists commands, Ctrl-C stops an answer, Ctrl-D leaves.\n",
			c.name, m.Context(), layout.About())
	}
	return c.talk()
}

// chat is a conversation.
type chat struct {
	p        *command.Program
	ctx      context.Context // SIGTERM ends it
	in       lineReader
	name     string // the model's
	session  *grove.Session
	request  grove.Request
	messages []grove.Message
	stats    bool
}

// reset forgets the conversation; system, if not empty, begins the next one.
func (c *chat) reset(system string) {
	c.messages = c.messages[:0]
	if system != "" {
		c.messages = append(c.messages, grove.Message{Role: "system", Content: system})
	}
}

// talk takes turns until the input ends.
func (c *chat) talk() error {
	for {
		line, err := c.in.read(c.ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		text := strings.TrimSpace(line)
		answer := text != ""
		if strings.HasPrefix(line, "/") {
			var leave bool
			answer, leave = c.command(text)
			if leave {
				return nil
			}
		} else if answer {
			if strings.HasPrefix(text, "/") {
				_, size := utf8.DecodeRuneInString(line) // a leading space marks text that is no command
				line = line[size:]
			}
			c.messages = append(c.messages, grove.Message{Role: "user", Content: line})
		}
		if !answer {
			continue
		}
		err = c.answer()
		if full := new(grove.ContextError); errors.As(err, &full) {
			err = fmt.Errorf("the conversation has %d tokens with this message, and the context holds %d: /reset starts a new one, "+
				"/undo removes the last turn, --context makes room", full.Need, full.Limit)
		}
		switch {
		case err == nil:
		case !c.in.interactive(), c.ctx.Err() != nil:
			return err
		default:
			c.note("%v", err)
		}
	}
}

// command runs a line that starts with a slash. answer is whether the model is to speak, leave whether to end the chat.
func (c *chat) command(line string) (answer, leave bool) {
	name, rest, _ := strings.Cut(line, " ")
	switch name {
	case "/exit", "/quit", "/bye":
		return false, true
	case "/reset":
		c.reset(c.system())
		c.note("the conversation starts over")
	case "/system":
		c.reset(strings.TrimSpace(rest))
		c.note("%s", c.begun())
	case "/undo":
		last, ok := c.back()
		if !ok {
			c.note("there is no turn to remove")
			return false, false
		}
		c.note("removed: %s", firstLine(last.Content))
	case "/again":
		last, ok := c.back()
		if !ok {
			c.note("there is nothing to answer yet")
			return false, false
		}
		c.messages = append(c.messages, last)
		c.request.Sampling.Seed++
		return true, false
	case "/stats":
		c.stats = !c.stats
		if c.stats {
			c.note("statistics follow each answer")
		} else {
			c.note("statistics are off")
		}
	case "/help":
		c.note("/reset  /undo  /again  /system TEXT  /stats  /exit   (more in grove chat --help)")
	default:
		c.note("there is no command %s: /help lists them; begin a message that starts with / with a space", name)
	}
	return false, false
}

func (c *chat) note(format string, args ...any) { fmt.Fprintf(c.p.Stderr, format+"\n", args...) }

// begun returns a line with the system message that the conversation began with.
func (c *chat) begun() string {
	if text := c.system(); text != "" {
		return "the conversation starts over, with the system message: " + firstLine(text)
	}
	return "the conversation starts over, without a system message"
}

// firstLine returns the beginning of a text, as a reminder of it.
func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > 60 {
		line, more = string(r[:60]), true
	}
	if more {
		line += " …"
	}
	return strings.Map(command.Visible, line)
}

// system returns the conversation's system message.
func (c *chat) system() string {
	if len(c.messages) > 0 && c.messages[0].Role == "system" {
		return c.messages[0].Content
	}
	return ""
}

// back removes the last turn, with its answer, and returns the user's message, if there is one.
func (c *chat) back() (last grove.Message, ok bool) {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].Role == "user" {
			last, c.messages = c.messages[i], c.messages[:i]
			return last, true
		}
	}
	return last, false
}

// answer lets the model speak. Ctrl-C ends the answer, and the part so far stays in the
// conversation; if the input is not a terminal, Ctrl-C ends the program.
func (c *chat) answer() error {
	ctx, stop := command.EndedBy(c.ctx, os.Interrupt)
	defer stop()
	out := &printer{p: c.p, whole: c.p.JSON}
	result, err := out.stream(c.session.Chat(ctx, c.messages, c.request))
	switch {
	case err == nil:
	case c.in.interactive() && errors.Is(err, context.Canceled) && c.ctx.Err() == nil:
		c.note("[stopped]")
	default:
		c.back() // do not keep a message that cannot be answered
		return err
	}
	c.messages = append(c.messages, grove.Message{Role: "assistant", Content: out.all.String()})
	if c.p.JSON {
		return c.p.PrintJSON(c.turn(result, out.all.String()))
	}
	out.newline()
	if result != nil && c.in.interactive() {
		switch result.Finish {
		case grove.FinishLength:
			c.note("[cut off: -n is %d tokens]", c.request.MaxTokens)
		case grove.FinishContext:
			c.note("[cut off: the context is full]")
		}
	}
	if c.stats && result != nil {
		return printStats(c.p.Stderr, c.name, result, nil)
	}
	return nil
}

// turnJSON is an answer in JSON, for programs.
type turnJSON struct {
	Role    string       `json:"role"`
	Content string       `json:"content"`
	Finish  grove.Finish `json:"finish"`
	Stats   *statsJSON   `json:"stats,omitempty"`
}

func (c *chat) turn(r *grove.Result, text string) turnJSON {
	t := turnJSON{Role: "assistant", Content: text, Finish: "interrupted"}
	if r != nil {
		t.Finish = r.Finish
		if c.stats {
			t.Stats = figures(inside.Stats(r))
		}
	}
	return t
}
