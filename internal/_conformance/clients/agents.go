package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
)

// The task of coding agents: greeting.txt has a line, and is to have another. Some look at picture.png first, which
// the model cannot see.
const (
	greeting = "Hello, moon.\n"
	changed  = "Hello, sun.\n"
	request  = "Change greeting.txt to greet the sun."
	done     = "The greeting is for the sun now."
)

// edited runs an agent's program, which must change the file and print the model's last words.
func edited(s *session, env []string, name string, args ...string) error {
	printed, err := s.do(env, name, args...)
	if err != nil {
		return err
	}
	if err := s.wants("greeting.txt", changed, printed); err != nil {
		return err
	}
	return wantsPrinted(printed, done)
}

// prepare writes the files of a task that begins with the picture.
func prepare(s *session) error {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 16, 16))); err != nil {
		return err
	}
	return errors.Join(s.write("greeting.txt", greeting), s.write("picture.png", picture.String()))
}

// unseen is the condition that a tool was called once, and that the model is told of an image.
func unseen(tool string) string {
	return offers(tool, 1) + " and 'An image was here' in s.result + s.user"
}

// has is the condition that a tool is offered.
func has(tool string) string { return fmt.Sprintf(`'"name": "%s"' in offered`, tool) }

// offers is the condition that a tool is offered and has given so many results.
func offers(tool string, results int) string {
	return fmt.Sprintf("%s and s.results == %d", has(tool), results)
}

// bystander answers what agents ask beside their task, such as a title.
var bystander = say("", "A greeting")

var codex = &client{
	name: "codex", npm: []string{"@openai/codex@0.171.0"},
	task: "Responses: an agent looks at an image, and reads and edits a file with its shell",
	model: func(s *session) []answer {
		return []answer{
			call(offers("exec_command", 0), "view_image", `{"path":"picture.png"}`),
			call(unseen("exec_command"), "exec_command", `{"cmd":"cat greeting.txt"}`),
			call(offers("exec_command", 2)+" and 'moon' in s.result", "exec_command",
				`{"cmd":"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: greeting.txt\n@@\n-Hello, moon.\n+Hello, sun.\n*** End Patch\nEOF\n"}`),
			say(offers("exec_command", 3), done),
			bystander,
		}
	},
	run: func(s *session) error {
		if err := prepare(s); err != nil {
			return err
		}
		provider := fmt.Sprintf(`model_providers.grove={name="grove",base_url="%s/v1",wire_api="responses"}`, s.url)
		return edited(s, nil, "codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access",
			"--model", "scripted",
			"-c", "model_provider=grove", "-c", provider, request)
	},
}

var claudeCode = &client{
	name: "claude-code", npm: []string{"@anthropic-ai/claude-code@2.1.332"},
	task: "Messages: an agent reads an image, and reads and edits a file with its tools",
	model: func(s *session) []answer {
		path := filepath.Join(s.dir, "greeting.txt")
		return []answer{
			call(offers("Edit", 0), "Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(s.dir, "picture.png"))),
			call(unseen("Edit"), "Read", fmt.Sprintf(`{"file_path":%q}`, path)),
			call(offers("Edit", 2)+" and 'moon' in s.result", "Edit",
				fmt.Sprintf(`{"file_path":%q,"old_string":"Hello, moon.","new_string":"Hello, sun."}`, path)),
			say(offers("Edit", 3), done),
			bystander,
		}
	},
	run: func(s *session) error {
		if err := prepare(s); err != nil {
			return err
		}
		return edited(s, []string{"ANTHROPIC_BASE_URL=" + s.url, "ANTHROPIC_API_KEY=x",
			"DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
			"claude", "--print", "--model", "scripted", "--permission-mode", "acceptEdits", request)
	},
}

var opencode = &client{
	name: "opencode", npm: []string{"opencode-ai@1.18.33"},
	task: "chat completions: an agent reads an image, and reads and edits a file with its tools",
	model: func(s *session) []answer {
		path := filepath.Join(s.dir, "greeting.txt")
		return []answer{
			call(offers("edit", 0), "read", fmt.Sprintf(`{"filePath":%q}`, filepath.Join(s.dir, "picture.png"))),
			call(unseen("edit"), "read", fmt.Sprintf(`{"filePath":%q}`, path)),
			call(offers("edit", 2)+" and 'moon' in s.result", "edit",
				fmt.Sprintf(`{"filePath":%q,"oldString":"Hello, moon.","newString":"Hello, sun."}`, path)),
			say(offers("edit", 3), done),
			bystander,
		}
	},
	run: func(s *session) error {
		config := fmt.Sprintf(`{"provider": {"grove": {"npm": "@ai-sdk/openai-compatible", "name": "grove", "options": {"baseURL": "%s/v1"},
			"models": {"scripted": {"name": "scripted", "modalities": {"input": ["text", "image"], "output": ["text"]}}}}}, "permission": "allow", "autoupdate": false}`, s.url)
		if err := errors.Join(prepare(s), s.write("opencode.json", config)); err != nil {
			return err
		}
		return edited(s, nil, "opencode", "run", "--model", "grove/scripted", request)
	},
}

var aider = &client{
	name: "aider", pypi: []string{"aider-chat==0.86.2"}, task: "chat completions: an agent edits a file by blocks in text",
	model: func(s *session) []answer {
		return []answer{
			say("'SEARCH' in offered", "greeting.txt\n```\n<<<<<<< SEARCH\nHello, moon.\n=======\nHello, sun.\n>>>>>>> REPLACE\n```\n\n"+done),
			bystander,
		}
	},
	run: func(s *session) error {
		if err := s.write("greeting.txt", greeting); err != nil {
			return err
		}
		return edited(s, []string{"OPENAI_API_BASE=" + s.url + "/v1", "OPENAI_API_KEY=x"}, "aider", "--model",
			"openai/scripted", "--edit-format", "diff",
			"--no-git", "--yes-always", "--no-check-update", "--no-show-model-warnings", "--no-analytics", "--message",
			request, "greeting.txt")
	},
}

var gptme = &client{
	name: "gptme", pypi: []string{"gptme==0.35.1"}, task: "chat completions: an agent edits a file with its tools, as calls",
	model: func(s *session) []answer {
		return []answer{
			call(offers("save", 0), "save", fmt.Sprintf(`{"path":"greeting.txt","content":%q}`, changed)),
			say(offers("save", 1), done),
			bystander,
		}
	},
	run: func(s *session) error {
		if err := s.write("greeting.txt", greeting); err != nil {
			return err
		}
		return edited(s, []string{"OPENAI_BASE_URL=" + s.url + "/v1", "OPENAI_API_KEY=x"}, "gptme",
			"--non-interactive", "--no-confirm",
			"--tool-format", "tool", "--model", "local/scripted", request)
	},
}

// generic has an agent do its task over a chat template that knows no tools, for which grove has a form of its own.
func generic(c *client) *client {
	g := *c
	g.name += "-generic"
	g.folder = c.name
	g.template = withoutTools
	g.task += ", over a template without tools"
	return &g
}
