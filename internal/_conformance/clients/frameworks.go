package main

// frameworkAnswers are those for the frameworks' programs, which have the same tools and ask for the same schema.
func frameworkAnswers(*session) []answer {
	const city = `{"city": "Paris"}`
	asked := "'capital' in s.user"
	var answers []answer
	for _, tool := range []string{"answer_city", "City", "PartialCity", "json"} {
		answers = append(answers, call(asked+" and "+has(tool), tool, city))
	}
	return append(answers, say(asked, city),
		call(offers("transfer_to_editor", 0), "transfer_to_editor", "{}"),
		call("'sun' in s.user and "+offers("read_file", 0), "read_file", `{"path":"greeting.txt"}`),
		call("'sun' in s.user and 'moon' in s.result and 'written' not in s.result", "write_file",
			`{"path":"greeting.txt","text":"Hello, sun.\n"}`),
		call("'sun' in s.user and "+has("read_file")+" and 'written' not in s.result", "read_file", `{"path": "greeting.txt"}`),
		say("", done))
}

// framework runs a program of programs/.
func framework(file string) func(s *session) error {
	return func(s *session) error {
		_, err := s.program(file, greeting, changed, request, done)
		return err
	}
}

var frameworks = []*client{
	{
		name: "vercel-ai", npm: []string{"ai@6.0.326", "@ai-sdk/openai@3.0.141", "@ai-sdk/openai-compatible@2.0.91",
			"@ai-sdk/anthropic@3.0.140", "zod@4.1.8"},
		task:  "all three providers, Responses too: an agent edits a file, whole and by streams; output in a schema, with and without tools",
		model: frameworkAnswers, run: framework("vercel.mjs"),
	},
	{
		name: "openai-agents", pypi: []string{"openai-agents==0.24.0", "openai==3.3.0"},
		task:  "Responses and chat completions: an agent edits a file, whole and by streams; a later turn; handoff; output in a schema, with and without tools",
		model: frameworkAnswers, run: framework("openai_agents.py"),
	},
	{
		name: "pydantic-ai", pypi: []string{"pydantic-ai-slim[openai,anthropic]==2.38.0", "openai==3.3.0", "anthropic==1.17.0"},
		task:  "chat completions, Responses, Messages: an agent edits a file, whole and by streams; a later turn; output by tool, schema and prompt",
		model: frameworkAnswers, run: framework("pydantic_ai_agent.py"),
	},
	{
		name: "langgraph", pypi: []string{"langgraph==1.2.24", "langchain==1.5.2", "langchain-openai==1.7.4",
			"langchain-anthropic==1.7.10", "openai==3.3.0", "anthropic==2.14.0"},
		task:  "chat completions, Responses, Messages: an agent edits a file, whole and by streams; output by provider and by tool",
		model: frameworkAnswers, run: framework("langgraph_agent.py"),
	},
	{
		name: "instructor", pypi: []string{"instructor==1.17.0", "openai==3.3.0", "anthropic==2.14.0"},
		task:  "chat completions, Responses, Messages: an object by each of its modes, whole and in parts",
		model: frameworkAnswers, run: framework("instructor_city.py"),
	},
}
