from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from task import *


class City(BaseModel):
    """A city."""

    city: str


models = {
    "chat": ChatOpenAI(model="scripted", base_url=URL + "/v1", api_key="x", max_retries=0),
    "responses": ChatOpenAI(model="scripted", base_url=URL + "/v1", api_key="x", max_retries=0, use_responses_api=True),
    "anthropic": ChatAnthropic(model="scripted", base_url=URL, api_key="x", max_retries=0),
}
for name, model in models.items():
    tools = [read_file, write_file]
    ask = {"messages": [{"role": "user", "content": REQUEST}]}
    reset()
    agent = create_agent(model, tools, system_prompt="You edit files.")
    check(name, agent.invoke(ask)["messages"][-1].text)
    reset()
    for _ in agent.stream(ask, stream_mode="messages"):
        pass
    check(name, DONE)
    for strategy in (ProviderStrategy(City), ToolStrategy(City)):
        for offered in ([], tools):
            asked = create_agent(model, offered, response_format=strategy)
            result = asked.invoke({"messages": [{"role": "user", "content": QUESTION}]})
            assert result["structured_response"] == City(city="Paris"), (name, strategy, result)
    structured = model.with_structured_output(City)
    assert structured.invoke(QUESTION) == City(city="Paris")
