package conformance

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/serve"
)

const chatML = "{% if tools %}<tool_call> {{ tools | tojson }}\n{% endif %}{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}\n{% endfor %}<|assistant|>\n" +
	"{% if enable_thinking is defined and enable_thinking %}<think>\n{% endif %}{# </think> #}"

// withChat is the model in the command, with a chat template, which it has none of. It is opened once.
var withChat = sync.OnceValues(func() (*grove.Model, error) {
	return grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 2, ChatTemplate: chatML})
})

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
