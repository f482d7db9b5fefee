package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/grovellm/grove/serve"
)

func ask(text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "grove/model", Instructions: openai.String("Be brief."),
		MaxOutputTokens: openai.Int(60), Temperature: openai.Float(0),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

// The last event of a stream has the response that is not streamed, and the pieces are its text.
func TestOpenAIResponses(t *testing.T) {
	plain, thinking := client(start(t, serve.Options{})), client(startReasoning(t))
	for name, change := range map[string]func(*responses.ResponseNewParams){
		"text":      func(*responses.ResponseNewParams) {},
		"logprobs":  func(p *responses.ResponseNewParams) { p.TopLogprobs = openai.Int(2) },
		"reasoning": func(p *responses.ResponseNewParams) { p.Reasoning.Effort = shared.ReasoningEffortLow },
		"schema": func(p *responses.ResponseNewParams) {
			p.Text.Format = responses.ResponseFormatTextConfigUnionParam{
				OfJSONSchema: &responses.ResponseFormatTextJSONSchemaConfigParam{Name: "x", Schema: schema}}
		},
		"tools": func(p *responses.ResponseNewParams) {
			p.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "resize",
				Parameters: schema, Strict: openai.Bool(true)}}}
			p.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{
				OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: "resize"}}
		},
		"result": func(p *responses.ResponseNewParams) {
			done := responses.ResponseInputItemParamOfFunctionCallOutput("done")
			done.OfFunctionCallOutput.CallID = openai.String("c1")
			p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
				responses.ResponseInputItemParamOfMessage("func main() {", responses.EasyInputMessageRoleUser),
				responses.ResponseInputItemParamOfFunctionCall(`{"size": 1}`, "c1", "resize"),
				done,
			}}
		},
	} {
		p, c := ask("func main() {"), plain
		change(&p)
		if name == "reasoning" {
			c = thinking
		}
		budget := option.WithJSONSet("reasoning_budget", 8)
		whole, err := c.Responses.New(t.Context(), p, budget)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, arguments := "", ""
		var last responses.Response
		stream := c.Responses.NewStreaming(t.Context(), p, budget)
		for stream.Next() {
			switch e := stream.Current().AsAny().(type) {
			case responses.ResponseTextDeltaEvent:
				text += e.Delta
			case responses.ResponseFunctionCallArgumentsDeltaEvent:
				arguments += e.Delta
			case responses.ResponseCompletedEvent:
				last = e.Response
			case responses.ResponseIncompleteEvent:
				last = e.Response
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(whole.Output) == 0 || text != whole.OutputText() || last.OutputText() != text ||
			len(last.Output) != len(whole.Output) || last.Status != whole.Status ||
			last.Usage.OutputTokens != whole.Usage.OutputTokens || whole.Usage.OutputTokens == 0 {
			t.Fatalf("%s: streamed %q and %s, whole %s", name, text, last.RawJSON(), whole.RawJSON())
		}
		first := whole.Output[0]
		switch name {
		case "reasoning":
			if first.Type != "reasoning" || len(first.Content) != 1 || first.Content[0].Text == "" {
				t.Errorf("%s: %s", name, whole.RawJSON())
			}
		case "logprobs":
			if list := first.Content[0].Logprobs; len(list) == 0 || len(list[0].TopLogprobs) != 2 {
				t.Errorf("%s: %s", name, whole.RawJSON())
			}
		case "schema", "tools":
			if name == "tools" {
				text = first.Arguments.OfString
				if first.Type != "function_call" || first.Name != "resize" ||
					text != arguments {
					t.Errorf("%s: %s, streamed %q", name, whole.RawJSON(), arguments)
				}
			}
			var v struct{ Size *int }
			if err := json.Unmarshal([]byte(text), &v); err != nil || v.Size == nil {
				t.Errorf("%s: %s", name, whole.RawJSON())
			}
		}
	}
}

// Errors name the field; a stream that the client cancels ends with its error, and the server goes
// on.
func TestOpenAIResponseErrors(t *testing.T) {
	c := client(start(t, serve.Options{}))
	p := ask("x")
	p.PreviousResponseID = openai.String("resp_1")
	var e *openai.Error
	if _, err := c.Responses.New(t.Context(), p); !errors.As(err, &e) || e.StatusCode != 400 ||
		e.Param != "previous_response_id" {
		t.Errorf("previous_response_id: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p = ask("x")
	p.MaxOutputTokens = openai.Int(1500)
	stream := c.Responses.NewStreaming(ctx, p, option.WithJSONSet("ignore_eos", true))
	for n := 0; stream.Next(); n++ {
		if n == 6 {
			cancel()
		}
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("the cancelled stream ends with %v", stream.Err())
	}
	cancel()
	if _, err := c.Responses.New(t.Context(), ask("x")); err != nil {
		t.Error(err)
	}
}
