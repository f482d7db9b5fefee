package serve

import (
	"net/http"
	"regexp"
	"strings"
)

// protocol is what a family of endpoints has in common, apart from the fields of answers.
type protocol struct {
	path string // prefix of their paths

	lines      bool   // streams are lines of JSON, not server-sent events
	ping, done string // sent by a stream while it has nothing to send, and at its end
	idHeader   string // a header with the request's id, in addition to X-Request-Id
	errorEvent string // the name of an error's event
	errorBody  func(x *exchange, e *apiError) any
	overflow   string // says that a prompt of %[1]s tokens exceeds %[2]d: clients know the words
}

// protocols lists all of them. The first that matches a path applies.
var protocols = []protocol{
	{path: "/v1/messages", ping: "event: ping\ndata: {\"type\":\"ping\"}\n\n", idHeader: "Request-Id",
		errorEvent: "error", errorBody: anthropicError, overflow: "prompt is too long: %s tokens > %d maximum"},
	{path: "/api/", lines: true, errorBody: ollamaError,
		overflow: "the input length exceeds the context length: the input has %s tokens, the context holds %d"},
	{path: "/infill", ping: ": still running\n\n", errorBody: openAIError, overflow: llamaOverflow},
	{path: "/completion", ping: ": still running\n\n", errorBody: openAIError, overflow: llamaOverflow},
	{path: "/v1/responses", ping: ": still running\n\n", errorBody: openAIError,
		overflow: "Your input exceeds the context window of this model. Please adjust your input and try again." +
			" It has %s tokens, and the context window holds %d."},
	{path: "/v1/chat/", ping: ": still running\n\n", done: doneEvent, errorBody: openAIError,
		overflow: "This model's maximum context length is %[2]d tokens. However, your messages resulted in %[1]s tokens." +
			" Please reduce the length of the messages."},
	{ping: ": still running\n\n", done: doneEvent, errorBody: openAIError,
		overflow: "This model's maximum context length is %[2]d tokens, however you requested %[1]s tokens." +
			" Please reduce your prompt."},
}

const llamaOverflow = "request (%s tokens) exceeds the available context size (%d tokens): send a shorter prompt"

const doneEvent = "data: [DONE]\n\n"

// loose matches the paths of OpenAI's and Anthropic's endpoints as some clients write them: without /v1, with KServe's
// prefix, or with a slash at the end.
var loose = regexp.MustCompile(`^(?:/openai)?(?:/v1)?(/(?:chat/completions|completions|responses|messages|embeddings|models)(?:/.+?)?)/?$`)

// withVersion returns a request whose path begins with /v1.
func withVersion(r *http.Request) *http.Request {
	path := loose.ReplaceAllString(r.URL.Path, "/v1$1")
	if path == r.URL.Path {
		return r
	}
	versioned, address := *r, *r.URL
	address.Path = path
	address.RawPath = loose.ReplaceAllString(r.URL.RawPath, "/v1$1")
	versioned.URL = &address
	return &versioned
}

func protocolOf(r *http.Request) *protocol {
	path := r.URL.Path
	if asksAsAnthropic(r) {
		path = "/v1/messages"
	}
	for i := range protocols {
		if strings.HasPrefix(path, protocols[i].path) {
			return &protocols[i]
		}
	}
	panic("no protocol") // the last one matches every path
}

// openAIError returns an error in OpenAI's form.
func openAIError(_ *exchange, e *apiError) any {
	return struct {
		Error *apiError `json:"error"`
	}{e}
}
