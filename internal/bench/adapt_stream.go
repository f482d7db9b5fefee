// Streams of prompts like those that a server gets: of one kind, of mixed kinds, with an attacker among them.

package bench

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/grovellm/grove/internal/train/data"
)

// Stream is prompts in the order in which they arrive.
type Stream struct {
	Name    string
	Prompts []StreamPrompt
}

// StreamPrompt is a prompt of a suite or, for an attacker, a number of random tokens.
type StreamPrompt struct {
	Kind string // the suite it is from
	Prompt
	Random int
}

// Attack is the kind of meaningless prompts: random tokens, to be followed by random tokens.
const (
	Attack       = "attack"
	attackTokens = 200
	novels       = "novels"
	novelChars   = 600
)

// OpenStream makes a stream of n prompts. text lists kinds: kinds joined by "+" are mixed at
// random, in equal shares; stretches joined by ">" follow each other, of equal length or the length
// after a "*": "attack*100>prose" is 100 prompts of an attacker, then prose. Kinds are suites (see
// OpenSuite), "novels" (passages from throughout the novels) and "attack". The same text, seed and
// files give the same stream.
func OpenStream(text string, n int, seed uint64, o SuiteOptions) (Stream, error) {
	s := Stream{Name: text}
	stretches := strings.Split(text, ">")
	left := n
	for i, stretch := range stretches {
		kinds, size := stretch, left/(len(stretches)-i)
		if at := strings.LastIndexByte(stretch, '*'); at >= 0 {
			if _, err := fmt.Sscanf(stretch[at+1:], "%d", &size); err != nil || size < 1 {
				return s, fmt.Errorf("stream %q: %q: want a number of prompts after *", text, stretch)
			}
			kinds = stretch[:at]
			size = min(size, left)
		}
		left -= size
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		if err := s.mix(strings.Split(kinds, "+"), size, rng, o); err != nil {
			return s, fmt.Errorf("stream %q: %w", text, err)
		}
	}
	if len(s.Prompts) == 0 {
		return s, fmt.Errorf("stream %q has no prompts", text)
	}
	return s, nil
}

// mix appends size prompts of some kinds.
func (s *Stream) mix(kinds []string, size int, rng *rand.Rand, o SuiteOptions) error {
	var part []StreamPrompt
	for i, kind := range kinds {
		n := size*(i+1)/len(kinds) - size*i/len(kinds)
		prompts, err := ofKind(kind, n, rng, o)
		if err != nil {
			return err
		}
		for k := range n { // repeat a suite that is too small
			part = append(part, prompts[k%len(prompts)])
		}
	}
	rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	s.Prompts = append(s.Prompts, part...)
	return nil
}

func ofKind(kind string, n int, rng *rand.Rand, o SuiteOptions) (prompts []StreamPrompt, err error) {
	switch kind {
	case Attack:
		return []StreamPrompt{{Kind: Attack, Random: attackTokens}}, nil
	case novels:
		return passagesOfNovels(n, rng, o)
	}
	o.N, o.Spare = n, 0
	suite, err := OpenSuite(kind, o)
	for _, p := range suite.Prompts {
		prompts = append(prompts, StreamPrompt{Kind: kind, Prompt: p})
	}
	if err == nil && len(prompts) == 0 {
		err = fmt.Errorf("suite %s has no prompts", kind)
	}
	return prompts, err
}

// passagesOfNovels takes passages from random places in the novels, which take turns.
func passagesOfNovels(n int, rng *rand.Rand, o SuiteOptions) (prompts []StreamPrompt, err error) {
	dir, err := o.data("prose")
	if err != nil {
		return nil, err
	}
	docs, _, err := data.Source{Name: novels, Kind: data.Text, Path: filepath.Join(dir, "*.txt"),
		Except: []string{wikitextFile}, Weight: 1}.Documents()
	if err != nil {
		return nil, err
	}
	var texts [][]rune
	for _, d := range docs {
		if r := []rune(d.Text()); len(r) > 2*novelChars {
			texts = append(texts, r)
		}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s: no text of more than %d characters in it", dir, 2*novelChars)
	}
	for i := range n {
		text := texts[i%len(texts)]
		at := rng.IntN(len(text) - novelChars)
		prompts = append(prompts, StreamPrompt{Kind: novels, Prompt: Prompt{Name: novels, Text: string(text[at : at+novelChars])}})
	}
	return prompts, nil
}
