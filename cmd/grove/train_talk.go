// Conversations with a model, from which a head for it learns: prompts that are given, or that the
// model makes up, and the model's answers.

package main

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/grovellm/grove"
	layouts "github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tokenizer"
)

// talker holds conversations.
type talker struct {
	m      *grove.Model
	layout *layouts.Layout // of conversations; if nil, prompts are texts to continue as they are

	prompts      [][]grove.Message // the given messages of each conversation
	ownShare     float64           // the fraction of conversations whose prompts the model makes up
	ownTurns     int               // turns of one in four of these; the others have one
	temperatures []float64         // of answers, in turn
	longest      int               // most tokens of an answer
	longestAsk   int               // most tokens of a prompt that the model makes up

	// say continues a prompt, and reports whether the continuation ended by itself.
	say func(ctx context.Context, prompt []int32, most int, temperature float32, seed uint64) ([]int32, bool, error)
}

// source identifies who talks, how conversations are laid out, and the settings.
func (t *talker) source(model, who string) string {
	var templates map[string]string
	if t.layout != nil {
		templates = t.m.Tokenizer().Templates()
	}
	return train.Fingerprint([]any{templates, t.ownShare, t.ownTurns, t.temperatures, t.longest, t.longestAsk}, model, who)
}

// key identifies the contents of a numbered conversation, regardless of any after it.
func (t *talker) key(number int) string {
	given, kind := t.given(number)
	return train.Fingerprint([]any{given, kind}, strconv.Itoa(number))
}

// given returns a conversation's given messages, or none. kind sets temperature, turns and thinking.
func (t *talker) given(number int) (rest []grove.Message, kind int) {
	before := int(float64(number) * t.ownShare)
	if int(float64(number+1)*t.ownShare) > before {
		return nil, before
	}
	at := (number - before) % len(t.prompts)
	return t.prompts[at], at + (number-before)/len(t.prompts) // of another kind when it is repeated
}

// talk holds the conversation with a number.
func (t *talker) talk(ctx context.Context, number int) (talk []train.Conversation, err error) {
	var messages []grove.Message
	rest, kind := t.given(number)
	own := rest == nil
	temperature := float32(t.temperatures[kind%len(t.temperatures)])
	for turn := 0; ; turn++ {
		seed := uint64(number)<<8 + uint64(turn)
		if own {
			if turn > 0 && (turn == t.ownTurns || kind/8%4 != 3) {
				return talk, nil
			}
			text, err := t.ask(ctx, messages, seed)
			if err != nil || text == "" {
				return talk, err
			}
			messages = append(messages, grove.Message{Role: "user", Content: text})
		} else {
			n := slices.IndexFunc(rest, bench.IsUser)
			if n < 0 {
				return talk, nil
			}
			messages, rest = append(messages, rest[:n+1]...), rest[n+1:]
		}
		prompt, err := t.lay(messages, kind%8 < 4)
		if err != nil || len(prompt)+t.longest > t.m.Context() {
			return talk, err
		}
		answer, ended, err := t.say(ctx, prompt, t.longest, temperature, seed)
		if err != nil || len(answer) < 2 {
			return talk, err
		}
		text := t.m.Tokenizer().Decode(answer, tokenizer.DecodeOptions{})
		if end := t.end(prompt, messages); ended && end >= 0 && !t.m.Tokenizer().IsEOG(answer[len(answer)-1]) {
			answer = append(answer, end)
		}
		talk = append(talk, train.Conversation{Tokens: append(prompt, answer...), From: len(prompt), Greedy: temperature == 0})
		if !ended {
			return talk, nil // no turn follows one that was cut short
		}
		messages = append(messages, grove.Message{Role: "assistant", Content: text})
	}
}

// check refuses given messages that the template refuses, with answers between them.
func (t *talker) check(given []grove.Message) error {
	dry := talker{m: t.m, layout: t.layout, prompts: [][]grove.Message{given}, temperatures: []float64{0}}
	dry.say = func(context.Context, []int32, int, float32, uint64) ([]int32, bool, error) {
		tokens, err := t.m.Tokenize("Yes, yes")
		return tokens, true, err
	}
	_, err := dry.talk(context.Background(), 0)
	return err
}

// lay lays messages out, up to the beginning of the answer; without a template they are one text. A model that thinks
// before it answers does so in every other four conversations: its thoughts can take the whole length of an answer.
func (t *talker) lay(messages []grove.Message, thinks bool) ([]int32, error) {
	if t.layout == nil {
		var texts []string
		for _, m := range messages {
			texts = append(texts, m.Content)
		}
		return t.m.Tokenize(strings.Join(texts, "\n\n"))
	}
	o := layouts.Options{Prompt: true}
	if !thinks {
		o.Vars = map[string]json.RawMessage{"enable_thinking": json.RawMessage("false")}
		if tokens, err := t.layout.Encode(messages, o); err == nil {
			return tokens, nil
		}
		o.Vars = nil // it always thinks, and its template says so
	}
	return t.layout.Encode(messages, o)
}

// end returns the token that ends an answer to a prompt, by the template: often not the token that ends a text.
func (t *talker) end(prompt []int32, messages []grove.Message) int32 {
	tok := t.m.Tokenizer()
	if t.layout != nil {
		answered := append(slices.Clone(messages), grove.Message{Role: "assistant", Content: "Yes"})
		tokens, err := t.layout.Encode(answered, layouts.Options{})
		tokens = tokens[speculate.CommonPrefix(prompt, tokens):]
		if at := slices.IndexFunc(tokens, tok.IsEOG); err == nil && at >= 0 {
			return tokens[at]
		}
	}
	return tok.EOS()
}

// ask makes the model write the user's next message: its text after the header of the user's turn (Magpie, arXiv
// 2406.08464). The message is empty if the text is unusable: if it does not end by itself, or has no word.
func (t *talker) ask(ctx context.Context, messages []grove.Message, seed uint64) (string, error) {
	header, err := t.header(messages)
	if err != nil || len(header) == 0 || len(header)+t.longestAsk > t.m.Context() {
		return "", err
	}
	tokens, ended, err := t.say(ctx, header, t.longestAsk, 1, seed)
	if err != nil || !ended {
		return "", err
	}
	text := strings.TrimSpace(t.m.Tokenizer().Decode(tokens, tokenizer.DecodeOptions{}))
	if len(strings.Fields(text)) < 2 || strings.IndexFunc(text, unicode.IsLetter) < 0 ||
		strings.ContainsRune(text, unicode.ReplacementChar) {
		return "", nil
	}
	return text, nil
}

// header returns how a conversation continues up to the user's next message: everything before it, whatever it is.
func (t *talker) header(messages []grove.Message) ([]int32, error) {
	var like []int32
	for i, says := range []string{"Why", "0", "\"x\""} {
		next := append(slices.Clone(messages), grove.Message{Role: "user", Content: says})
		tokens, err := t.layout.Encode(next, layouts.Options{})
		if err != nil {
			return nil, err
		}
		if i == 0 {
			like = tokens
		}
		like = like[:speculate.CommonPrefix(like, tokens)]
	}
	return like, nil
}

// sayItself is say by the model itself.
func (t *talker) sayItself(ctx context.Context, prompt []int32, most int, temperature float32,
	seed uint64) ([]int32, bool, error) {
	r := grove.Request{MaxTokens: most, Sampling: sample.Params{Temperature: temperature, Seed: seed}}
	result, err := grove.Collect(t.m.GenerateTokens(ctx, prompt, r))
	if err != nil {
		return nil, false, err
	}
	return result.Tokens, result.Finish == grove.FinishEnd, nil
}
