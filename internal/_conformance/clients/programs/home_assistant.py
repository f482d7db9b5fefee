"""What Home Assistant's integrations of Ollama and OpenAI send, through the clients that they use."""

import asyncio
import json
import os

import ollama
import openai

URL = os.environ["GROVE_URL"]
DONE = "The light in the kitchen is on."
SYSTEM = "You are a voice assistant for Home Assistant."
REQUEST = "Turn on the kitchen light."
PARAMETERS = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "domain": {"type": "array", "items": {"type": "string"}},
        "brightness": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": [],
}
# The integration for OpenAI adds "strict" within schemas, and null to optional properties.
STRUCTURE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "note": {"type": ["string", "null"]}},
    "required": ["city", "note"],
    "strict": True,
    "additionalProperties": False,
}
CITY = {"city": "Paris", "note": None}


def turn_on(arguments):
    assert arguments["name"] == "kitchen", arguments
    return json.dumps({"data": {"success": ["light.kitchen"]}, "error": None})


async def through_ollama():
    client = ollama.AsyncClient(host=URL)
    model = (await client.list()).models[0].model
    ask = {"model": model, "stream": True, "keep_alive": -1, "options": {"num_ctx": 8192}, "think": False}
    tool = {"type": "function", "function": {"name": "HassTurnOn", "description": "Turns on a device.", "parameters": PARAMETERS}}
    messages = [ollama.Message(role="system", content=SYSTEM), ollama.Message(role="user", content=REQUEST)]
    for _ in range(3):
        content, calls = "", []
        async for part in await client.chat(messages=messages, tools=[tool], format=None, **ask):
            content += part["message"].get("content") or ""
            calls += part["message"].get("tool_calls") or []
        messages.append(ollama.Message(role="assistant", content=content, thinking=None, tool_calls=calls or None))
        if not calls:
            break
        for call in calls:
            messages.append(ollama.Message(role="tool", content=turn_on(call["function"]["arguments"])))
    assert content == DONE, content
    structure = {k: v for k, v in STRUCTURE.items() if k != "strict"}
    text = ""
    asked = [ollama.Message(role="user", content="Which city is the capital of France?")]
    async for part in await client.chat(messages=asked, tools=None, format=structure, **(ask | {"keep_alive": "300s"})):
        text += part["message"].get("content") or ""
    assert json.loads(text) == CITY, text


async def through_openai():
    client = openai.AsyncOpenAI(base_url=URL + "/v1", api_key="x", max_retries=0)
    ask = {"model": "scripted", "max_output_tokens": 3000, "top_p": 1.0, "temperature": 1.0, "user": "01KXYZ", "store": False, "stream": True}
    tools = [
        {"type": "function", "name": "HassTurnOn", "description": "Turns on a device.", "parameters": PARAMETERS, "strict": False},
        {"type": "web_search_preview", "search_context_size": "medium"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ]
    messages = [{"type": "message", "role": "developer", "content": SYSTEM}, {"type": "message", "role": "user", "content": REQUEST}]
    for _ in range(3):
        content, call = "", None
        include = ["reasoning.encrypted_content", "code_interpreter_call.outputs"]
        stream = await client.responses.create(input=messages, tools=tools, include=include, text={"verbosity": "medium"}, **ask)
        async for event in stream:
            match event.type:
                case "response.output_item.added" if event.item.type == "function_call":
                    call = event.item
                case "response.output_text.delta":
                    content += event.delta
                case "response.function_call_arguments.delta":
                    call.arguments += event.delta
                case "response.completed":
                    assert event.response.usage.output_tokens > 0
                case "response.failed" | "response.incomplete" | "error":
                    raise ValueError(event)
        if content:
            messages.append({"type": "message", "role": "assistant", "content": content})
        if not call:
            break
        arguments = json.loads(call.arguments)
        messages.append({"type": "function_call", "name": call.name, "arguments": json.dumps(arguments), "call_id": call.call_id})
        messages.append({"type": "function_call_output", "call_id": call.call_id, "output": turn_on(arguments)})
    assert content == DONE, content
    question = [{"type": "message", "role": "user", "content": "Which city is the capital of France?"}]
    text = ""
    stream = await client.responses.create(input=question, text={"format": {"type": "json_schema", "name": "city", "schema": STRUCTURE}}, **ask)
    async for event in stream:
        if event.type == "response.output_text.delta":
            text += event.delta
    assert json.loads(text) == CITY, text


asyncio.run(through_ollama())
asyncio.run(through_openai())
