package serve

import (
	"net/http"
	"strings"
	"time"
)

// GET /v1/models for Anthropic's clients. OpenAI's API has the same path; Anthropic's clients send a version.

// asksAsAnthropic reports whether a request for models comes from one of Anthropic's clients.
func asksAsAnthropic(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/v1/models") && r.Header.Get("Anthropic-Version") != ""
}

// anthropicModel describes a model. The fields that are always null are unknown to this server.
type anthropicModel struct {
	Type         string    `json:"type"`
	ID           string    `json:"id"`
	Name         string    `json:"display_name"`
	Created      time.Time `json:"created_at"`
	Lifecycle    string    `json:"lifecycle"`
	MaxInput     *int      `json:"max_input_tokens"` // null until the model has been loaded
	MaxTokens    *int      `json:"max_tokens"`
	Capabilities *struct{} `json:"capabilities"`
	Deprecated   *struct{} `json:"deprecated_at"`
	Line         *struct{} `json:"line"`
	Retires      *struct{} `json:"retires_at"`
}

// anthropicModels is a page of models. There is only one page.
type anthropicModels struct {
	Data  []anthropicModel `json:"data"`
	More  bool             `json:"has_more"`
	First *string          `json:"first_id"`
	Last  *string          `json:"last_id"`
}

func (c *modelCard) asAnthropic() anthropicModel {
	m := anthropicModel{Type: "model", ID: c.ID, Name: c.ID, Created: time.Unix(c.Created, 0).UTC(), Lifecycle: "active"}
	if c.Context > 0 {
		m.MaxInput = &c.Context
		m.MaxTokens = &c.Context
	}
	return m
}

func newAnthropicModels(cards []modelCard) anthropicModels {
	page := anthropicModels{Data: []anthropicModel{}}
	for i := range cards {
		page.Data = append(page.Data, cards[i].asAnthropic())
	}
	if len(cards) > 0 {
		page.First = &cards[0].ID
		page.Last = &cards[len(cards)-1].ID
	}
	return page
}
