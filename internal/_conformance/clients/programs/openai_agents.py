import asyncio

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel
from task import *

set_tracing_disabled(True)


class City(BaseModel):
    city: str


async def main():
    client = AsyncOpenAI(base_url=URL + "/v1", api_key="x", max_retries=0)
    for kind in (OpenAIResponsesModel, OpenAIChatCompletionsModel):
        model = kind(model="scripted", openai_client=client)
        tools = [function_tool(read_file), function_tool(write_file)]
        agent = Agent(name="editor", instructions="You edit files.", model=model, tools=tools, model_settings=ModelSettings(parallel_tool_calls=False))
        reset()
        result = await Runner.run(agent, REQUEST)
        check(kind.__name__, result.final_output)
        reset()
        stream = Runner.run_streamed(agent, REQUEST)
        async for _ in stream.stream_events():
            pass
        check(kind.__name__, stream.final_output)
        again = await Runner.run(agent, result.to_input_list() + [{"role": "user", "content": "Thanks."}])
        assert again.final_output == DONE, again.final_output
        for offered in ([], tools):
            asked = Agent(name="guide", model=model, tools=offered, output_type=City)
            result = await Runner.run(asked, QUESTION)
            assert result.final_output == City(city="Paris"), result.final_output
        other = Agent(name="other", handoffs=[agent], model=model)
        reset()
        result = await Runner.run(other, REQUEST)
        check("handoff", result.final_output)


asyncio.run(main())
