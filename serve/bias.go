package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/grovellm/grove/tokenizer"
)

// logitBias is added to the logits of tokens, or, as in llama.cpp, of all tokens of a text: an object, or llama.cpp's
// list of pairs.
type logitBias []tokenBias

type tokenBias struct {
	name   string // as the request has it
	token  int
	isText bool
	add    addend
}

// addend is a number, or false, which in llama.cpp means that a token never comes.
type addend float32

func (a *addend) readJSON(d *decoder, path string, raw json.RawMessage) error {
	if string(raw) == "false" {
		*a = -100
		return nil
	}
	return d.read(path, raw, (*float32)(a))
}

func (b *logitBias) readJSON(d *decoder, path string, raw json.RawMessage) error {
	if raw[0] != '[' {
		var byName map[string]addend
		err := d.read(path, raw, &byName)
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			token, notNumber := strconv.Atoi(name)
			*b = append(*b, tokenBias{name, token, notNumber != nil, byName[name]})
		}
		return err
	}
	var one tokenBias // a single one in memory for all: there may be many
	for item := range elements(raw) {
		at := func(part string) string { return fmt.Sprintf("%s[%d]%s", path, len(*b), part) }
		if item[0] != '[' {
			return misfit(at(""), item, reflect.TypeFor[[]json.RawMessage]())
		}
		token, rest := cutValue(item[1:])
		add, rest := cutValue(rest)
		if third, _ := cutValue(rest); len(add) == 0 || len(third) > 0 {
			return fieldError(at(""), "want a token id or a text, and the number to add")
		}
		one = tokenBias{}
		var err error
		one.isText = token[0] == '"'
		if one.isText {
			one.name, _ = decode[string](token)
		} else {
			one.name = string(token)
			err = d.read(at("[0]"), token, &one.token)
		}
		if err == nil {
			err = d.read(at("[1]"), add, &one.add)
		}
		if err != nil {
			return err
		}
		*b = append(*b, one)
	}
	return nil
}

// biases returns the sum of the biases of each token.
func (o *options) biases(t *tokenizer.Tokenizer) (map[int32]float32, error) {
	if len(o.LogitBias.value) == 0 {
		return nil, nil
	}
	all := map[int32]float32{}
	for _, b := range o.LogitBias.value {
		tokens := []int32{int32(b.token)}
		switch {
		case !(b.add >= -100 && b.add <= 100), b.name == "", !b.isText && (b.token < 0 || b.token > math.MaxInt32):
			return nil, o.LogitBias.fail("%q: want a token id or a text, and -100 to 100 to add", b.name)
		case b.isText && t == nil:
			return nil, errNoTokenizer
		case b.isText:
			tokens = t.Encode(b.name, tokenizer.EncodeOptions{})
		}
		for _, token := range tokens {
			all[token] += float32(b.add)
		}
	}
	return all, nil
}
