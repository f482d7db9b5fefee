"""Random requests of every protocol, valid and wrong, with what their answers must be."""

from basics import *
from openai_asks import *
from other_asks import *

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def refused(r):
    ask = r.choice([chat, chat, completion, embeddings, response, message, count, ollama_chat, generate])(r)
    ask.wrong, ask.then = True, None
    body = ask.body
    image = {"/v1/chat/completions": {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}},
             "/v1/responses": {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64," + PIXEL},
             "/v1/messages": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}}.get(ask.path)
    kind = r.choice(["image", "image", "number", "missing", "type", "tool", "path", "method"])
    options = body.setdefault("options", {}) if ask.path.startswith("/api/") else body
    if kind == "image" and image:
        body["input" if ask.path == "/v1/responses" else "messages"] = [{"role": "user", "content": [image]}]
    elif kind == "image" and ask.path == "/api/chat":
        body["messages"] = [{"role": "user", "content": "What is this?", "images": [PIXEL]}]
    elif kind == "image" and ask.path == "/api/generate":
        body |= {"prompt": "What is this?", "images": [PIXEL]}
    elif kind == "number" and ask.path not in ("/v1/embeddings", "/v1/messages/count_tokens"):
        options["temperature"] = r.choice([-1, "hot", [1]])
    elif kind == "tool" and ask.path == "/v1/chat/completions":
        body |= {"tools": [{"type": "function", "function": function(r, "add")}], "tool_choice": {"type": "function", "function": {"name": "subtract"}}}
        body.pop("functions", None)
        body.pop("function_call", None)
    elif kind == "tool" and ask.path == "/v1/messages":
        body |= {"tools": [{"name": "add", "input_schema": an_object(r)}], "tool_choice": {"type": "tool", "name": "subtract"}}
    elif kind == "path":
        ask.path += "/none"
    elif kind == "method":
        ask.method, ask.body = "DELETE", None
    elif kind == "missing" and not ask.path.startswith("/api/"):
        for name in ("messages", "input", "prompt", "instructions"):
            body.pop(name, None)
    else:
        for name in ("messages", "input", "prompt"):
            if name in body:
                body[name] = r.choice([7, {"a": 1}, True])
    return ask


def late(r):
    """A request that asks for more than it has time for."""
    ask = r.choice([chat, completion, response, message, ollama_chat, generate])(r)
    ask.hurried, ask.then, ask.headers = True, None, {"X-Request-Timeout": "1"}
    (ask.body.setdefault("options", {}) if ask.path.startswith("/api/") else ask.body)["ignore_eos"] = True
    for body, name in (ask.body, "max_tokens"), (ask.body, "max_completion_tokens"), (ask.body, "max_output_tokens"), (ask.body.get("options", {}), "num_predict"):
        if name in body:
            body[name] = 1800
    return ask


def random_ask(r):
    kinds = {chat: 24, completion: 12, response: 20, input_tokens: 3, embeddings: 4, openai_models: 2, message: 18, count: 3, anthropic_models: 2, ollama_chat: 12, generate: 8, ollama_other: 6, refused: 12, late: 1}
    return seeded(r, r.choices(list(kinds), kinds.values())[0](r))
