from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from task import *


class City(BaseModel):
    city: str


openai = OpenAIProvider(base_url=URL + "/v1", api_key="x")
anthropic = AnthropicProvider(base_url=URL, api_key="x")
for model in (OpenAIChatModel("scripted", provider=openai), OpenAIResponsesModel("scripted", provider=openai), AnthropicModel("scripted", provider=anthropic)):
    name = type(model).__name__
    tools = [read_file, write_file]
    reset()
    agent = Agent(model, tools=tools, instructions="You edit files.")
    result = agent.run_sync(REQUEST)
    check(name, result.output)
    again = agent.run_sync("Thanks.", message_history=result.all_messages())
    assert again.output == DONE, again.output
    reset()
    stream = agent.run_stream_sync(REQUEST)
    check(name, "".join(stream.stream_text(delta=True)))
    outputs = [ToolOutput(City, name="answer_city"), PromptedOutput(City)]
    if name != "AnthropicModel":  # pydantic-ai knows which of Anthropic's own models have schemas
        outputs.append(NativeOutput(City))
    for output in outputs:
        for offered in ([], tools):
            asked = Agent(model, tools=offered, output_type=output)
            result = asked.run_sync(QUESTION)
            assert result.output == City(city="Paris"), (name, output, result.output)
