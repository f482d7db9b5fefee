package conformance

import (
	_ "embed"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/serve"
)

// chatML is a chat template with tools.
//
//go:embed template.jinja
var chatML string

// withChat is the model in the command, with a chat template, which it has none of. It is opened
// once.
var withChat = sync.OnceValues(func() (*grove.Model, error) {
	return grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 2, ChatTemplate: chatML})
})

// reasoning is the model with a chat template that has it reason first.
var reasoning = sync.OnceValues(func() (*grove.Model, error) {
	return grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 2, ChatTemplate: chatML +
		"<think>\n{# until </think> #}"})
})

// startReasoning serves that model.
func startReasoning(t *testing.T) string {
	t.Helper()
	m, err := reasoning()
	if err != nil {
		t.Fatal(err)
	}
	return serveModel(t, m, serve.Options{}) + "/v1"
}

// start serves the model with a chat template, and returns the base URL of its OpenAI API.
func start(t *testing.T, o serve.Options) string {
	t.Helper()
	m, err := withChat()
	if err != nil {
		t.Fatal(err)
	}
	return serveModel(t, m, o) + "/v1"
}

func serveModel(t *testing.T, m *grove.Model, o serve.Options) string {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.SetModel(&serve.Model{Model: m, Name: "grove/model", Drafter: "lookup"})
	h := httptest.NewServer(http.Handler(s))
	t.Cleanup(h.Close)
	return h.URL
}
