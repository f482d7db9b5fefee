import instructor
from anthropic import Anthropic
from openai import OpenAI
from pydantic import BaseModel
from task import *


class City(BaseModel):
    """A city."""

    city: str


openai = OpenAI(base_url=URL + "/v1", api_key="x", max_retries=0)
anthropic = Anthropic(base_url=URL, api_key="x", max_retries=0)
messages = [{"role": "user", "content": QUESTION}]
M = instructor.Mode
for mode in (M.TOOLS, M.TOOLS_STRICT, M.JSON, M.JSON_SCHEMA, M.MD_JSON, M.RESPONSES_TOOLS):
    client = instructor.from_openai(openai, mode=mode)
    found = client.chat.completions.create(model="scripted", messages=messages, response_model=City, max_retries=0)
    assert found.city == "Paris", (mode, found)
    for partial in client.chat.completions.create_partial(model="scripted", messages=messages, response_model=City, max_retries=0):
        pass
    assert partial.city == "Paris", (mode, partial)
for mode in (M.ANTHROPIC_TOOLS, M.ANTHROPIC_JSON):
    client = instructor.from_anthropic(anthropic, mode=mode)
    found = client.messages.create(model="scripted", max_tokens=500, messages=messages, response_model=City, max_retries=0)
    assert found.city == "Paris", (mode, found)
