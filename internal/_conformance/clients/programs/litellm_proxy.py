"""LiteLLM's proxy before the server, by each way that it has there, asked by two vendors' clients."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request

from anthropic import Anthropic
from openai import OpenAI
from task import *

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
KEY = "sk-" + secrets.token_hex(16)
ways = {
    "openai": {"model": "openai/scripted", "api_base": URL + "/v1"},
    "responses": {"model": "openai/responses/scripted", "api_base": URL + "/v1"},
    "vllm": {"model": "hosted_vllm/scripted", "api_base": URL + "/v1"},
    "anthropic": {"model": "anthropic/scripted", "api_base": URL},
    "ollama": {"model": "ollama_chat/scripted", "api_base": URL},
}
config = {"model_list": [{"model_name": name, "litellm_params": way | {"api_key": "x"}} for name, way in ways.items()]}
with open("config.yaml", "w") as f:
    json.dump(config, f)
command = [os.path.join(os.path.dirname(sys.executable), "litellm"), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
proxy = subprocess.Popen(command, stdout=sys.stderr, env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY})
base = f"http://127.0.0.1:{port}"


def wait():
    while proxy.poll() is None:
        try:
            return urllib.request.urlopen(base + "/health/readiness").read()
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the proxy has ended")


def tool(name, *properties):
    schema = {"type": "object", "properties": {p: {"type": "string"} for p in properties}, "required": list(properties)}
    return {"name": name, "description": "Works on files.", "schema": schema}


TOOLS = [tool("read_file", "path"), tool("write_file", "path", "text")]
DO = {"read_file": read_file, "write_file": write_file}


def by_openai(model, stream):
    client = OpenAI(base_url=base, api_key=KEY, max_retries=0)
    tools = [{"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": t["schema"]}} for t in TOOLS]
    messages = [{"role": "user", "content": REQUEST}]
    for _ in range(4):
        if stream:
            with client.chat.completions.stream(model=model, messages=messages, tools=tools) as s:
                said = s.get_final_completion().choices[0].message
        else:
            said = client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
        calls = said.tool_calls or []
        if not calls:
            return said.content
        kept = [{"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}} for c in calls]
        messages.append({"role": "assistant", "content": said.content, "tool_calls": kept})
        for c in calls:
            messages.append({"role": "tool", "tool_call_id": c.id, "content": DO[c.function.name](**json.loads(c.function.arguments))})


def by_anthropic(model):
    client = Anthropic(base_url=base, api_key=KEY, max_retries=0)
    tools = [{"name": t["name"], "description": t["description"], "input_schema": t["schema"]} for t in TOOLS]
    messages = [{"role": "user", "content": REQUEST}]
    for _ in range(4):
        said = client.messages.create(model=model, messages=messages, tools=tools, max_tokens=500)
        calls = [b for b in said.content if b.type == "tool_use"]
        if not calls:
            return "".join(b.text for b in said.content)
        messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in said.content]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": c.id, "content": DO[c.name](**c.input)} for c in calls]})


try:
    wait()
    for name in ways:
        for stream in (False, True):
            reset()
            check((name, stream), by_openai(name, stream))
        reset()
        check((name, "anthropic"), by_anthropic(name))
finally:
    proxy.terminate()
    proxy.wait()
