package serve

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"sync"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
)

// maxInputs is the maximum number of texts of a request for embeddings.
const maxInputs = 2048

// embedOptions are the fields that all requests for embeddings have.
type embedOptions struct {
	Model      field[string]     `json:"model"`
	Input      field[promptList] `json:"input"`
	Pooling    field[string]     `json:"pooling"`
	Dimensions field[int]        `json:"dimensions"`

	TruncatePromptTokens refused `json:"truncate_prompt_tokens" neutral:"-1"` // to the context
	AddSpecialTokens     refused `json:"add_special_tokens" neutral:"true"`
	Normalize            refused `json:"normalize" neutral:"true"`
	UseActivation        refused `json:"use_activation" neutral:"true"`
	EmbdNormalize        refused `json:"embd_normalize" neutral:"2"`
}

// embeddingsBody is the body of POST /v1/embeddings.
type embeddingsBody struct {
	embedOptions
	Encoding field[string] `json:"encoding_format"`
}

// embeddingList is the answer.
type embeddingList struct {
	Object string         `json:"object"`
	Model  string         `json:"model"`
	Data   []embedding    `json:"data"`
	Usage  embeddingUsage `json:"usage"`
}

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // numbers, or their bytes in base64
}

type embeddingUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// embeddings answers POST /v1/embeddings.
func (s *Server) embeddings(x *exchange) error {
	var b embeddingsBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return err
	}
	format := b.Encoding.or("float")
	if format != "float" && format != "base64" {
		return b.Encoding.fail("%q: want float or base64", format)
	}
	vectors, tokens, err := x.embed(m, &b.embedOptions, false)
	if err != nil {
		return err
	}
	list := make([]embedding, len(vectors))
	for i, v := range vectors {
		list[i] = embedding{"embedding", i, v}
		if format == "base64" { // little-endian 32-bit floats
			var data []byte
			for _, x := range v {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			}
			list[i].Embedding = base64.StdEncoding.EncodeToString(data)
		}
	}
	return x.writeJSON(http.StatusOK, embeddingList{"list", m.Name, list, embeddingUsage{tokens, tokens}})
}

// embed returns the embeddings of a request's texts, and their number of tokens.
func (x *exchange) embed(m *Model, o *embedOptions, truncate bool) (vectors [][]float32, tokens int, err error) {
	x.param = func(name string) string {
		if name == "Width" {
			return o.Dimensions.path
		}
		return o.Input.path
	}
	options := grove.EmbedOptions{Width: o.Dimensions.value}
	switch how := o.Pooling.or("mean"); {
	case how == "last":
		options.Last = true
	case how != "mean":
		return nil, 0, o.Pooling.fail("%q: want mean or last", how)
	case o.Pooling.given && inside.Target(m).Model.Config.PoolLast:
		return nil, 0, o.Pooling.fail("%q: the model's file asks for last: use that, or leave the field out", how)
	}
	c := &call{model: m}
	most := inside.Target(m).Context
	if truncate {
		most = 0
	}
	if err := c.setPrompts(&o.Input, maxInputs, most); err != nil {
		return nil, 0, err
	}
	x.endTurn()
	ctx, end := x.limit()
	defer end(nil)
	for i, p := range c.prompts {
		if len(p.tokens) == 0 && len(c.prompts) > 1 {
			return nil, 0, fieldError(fmt.Sprintf("%s[%d]", o.Input.path, i), "the input has no tokens: give some text")
		}
		if most := inside.Target(m).Context; truncate && len(p.tokens) > most {
			end := p.tokens[len(p.tokens)-1]
			p.tokens = p.tokens[:most]
			if t := m.Tokenizer(); t != nil && t.IsSpecial(end) { // it ends every text, as in Qwen3-Embedding
				p.tokens[most-1] = end
			}
		}
		most := 0 // a request that has begun is not refused
		if i == 0 {
			most = x.s.o.Waiting
		}
		leave, err := m.lanes.enter(ctx, x.tenant, most)
		if err != nil {
			return nil, 0, err
		}
		v, err := m.Embed(ctx, p.tokens, options)
		leave()
		if err != nil {
			return nil, 0, err
		}
		m.embedded.Add(int64(len(p.tokens)))
		vectors, tokens = append(vectors, v), tokens+len(p.tokens)
	}
	x.figure.prompt = tokens
	return vectors, tokens, nil
}

// lanes let one request of each key embed a text at a time. A model embeds texts in the order in which they are asked
// for, so that keys take turns, however many requests each has.
type lanes struct {
	mu  sync.Mutex
	all map[string]*lane
}

type lane struct {
	taken chan struct{} // has an element while a request embeds
	users int           // with those that wait
}

// enter waits until the key's lane is free. leave frees it. With most requests waiting there the queue is full; 0 means
// no limit.
func (l *lanes) enter(ctx context.Context, key string, most int) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.all[key]
	switch {
	case own == nil:
		own = &lane{taken: make(chan struct{}, 1)}
		if l.all == nil {
			l.all = map[string]*lane{}
		}
		l.all[key] = own
	case most > 0 && own.users > most:
		return nil, errFull
	}
	own.users++
	l.mu.Unlock()
	select {
	case own.taken <- struct{}{}:
		leave = func() {
			<-own.taken
			l.mu.Lock()
			defer l.mu.Unlock()
			l.lose(key)
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	l.mu.Lock()
	if err != nil {
		l.lose(key)
	}
	return leave, err
}

// lose takes a user from a lane.
func (l *lanes) lose(key string) {
	l.all[key].users--
	if l.all[key].users == 0 {
		delete(l.all, key)
	}
}
