package serve

import "strings"

// protocol is what the endpoints of a family have in common, apart from the fields of answers.
type protocol struct {
	path string // what their paths begin with

	lines      bool   // streams are lines of JSON, not server-sent events
	ping, done string // what a stream sends while nothing comes, and at its end
	idHeader   string // that has the request's id beside X-Request-Id
	errorEvent string // the name of an error's event
	errorBody  func(x *exchange, e *Error) any

	longestName int // of a tool, where it is not OpenAI's 64
}

// protocols are all of them; the first that fits a path counts.
var protocols = []protocol{
	{path: "/v1/messages", ping: "event: ping\ndata: {\"type\":\"ping\"}\n\n", idHeader: "Request-Id",
		errorEvent: "error", errorBody: anthropicError, longestName: 128},
	{path: "/api/", lines: true, errorBody: ollamaError},
	{path: "/infill", ping: ": still running\n\n", errorBody: openAIError},
	{path: "/v1/responses", ping: ": still running\n\n", errorBody: openAIError},
	{ping: ": still running\n\n", done: "data: [DONE]\n\n", errorBody: openAIError},
}

func protocolOf(path string) *protocol {
	for i := range protocols {
		if strings.HasPrefix(path, protocols[i].path) {
			return &protocols[i]
		}
	}
	panic("no protocol") // the last one fits every path
}

// openAIError is an error in OpenAI's form.
func openAIError(_ *exchange, e *Error) any {
	return struct {
		Error *Error `json:"error"`
	}{e}
}
