"""Random requests to Anthropic's and Ollama's endpoints."""

import json

import laws
import vendor_types as types
from basics import *
from openai_asks import chat_messages

# Anthropic's messages.


def turns(r):
    list_ = []
    for _ in range(r.randint(0, 2)):
        list_.append({"role": "user", "content": r.choice([text(r), parts(r)])})
        kind = r.random()
        if kind < 0.4:
            at = f"toolu_{len(list_)}"
            blocks = parts(r) if maybe(r) else []
            list_.append({"role": "assistant", "content": blocks + [{"type": "tool_use", "id": at, "name": "look_up", "input": arguments(r)}]})
            result = {"type": "tool_result", "tool_use_id": at}
            put(r, result, 0.7, content=lambda: r.choice([text(r), parts(r)]), is_error=lambda: maybe(r))
            list_.append({"role": "user", "content": [result] + (parts(r) if maybe(r) else [])})
            list_.append({"role": "assistant", "content": text(r)})
        elif kind < 0.6:
            list_.append({"role": "assistant", "content": [{"type": "thinking", "thinking": text(r), "signature": ""}] + parts(r)})
        else:
            list_.append({"role": "assistant", "content": text(r)})
    list_.append({"role": "user", "content": text(r)})
    if maybe(r, 0.1):
        list_.append({"role": "assistant", "content": text(r).strip()})
    return list_


def message(r):
    body = {"model": "grove", "messages": turns(r)}
    put(r, body, 0.3, system=lambda: r.choice([text(r), parts(r)]), temperature=lambda: r.choice([0, 0.5, 1]), top_p=0.9, top_k=lambda: r.randint(1, 50),
        stop_sequences=lambda: r.choice([["e"], ["\n", "moon"], []]), metadata={"user_id": "somebody"}, service_tier="auto")
    if maybe(r, 0.4):
        named = names(r)
        body["tools"] = [{"name": n, "description": text(r), "input_schema": an_object(r)} for n in named]
        if maybe(r, 0.2):
            body["tools"].append({"type": "bash_20250124", "name": "bash"})
        parallel = {"disable_parallel_tool_use": maybe(r)}
        put(r, body, 0.7, tool_choice=lambda: r.choice([{"type": "auto"} | parallel, {"type": "any"} | parallel, {"type": "tool", "name": named[0]} | parallel, {"type": "none"}]))
    put(r, body, 0.3, thinking=lambda: r.choice([{"type": "disabled"}, {"type": "adaptive"}, {"type": "enabled", "budget_tokens": r.randint(1, 3)}]))
    if "thinking" in body:
        body["reasoning_budget"] = r.choice([0, 1, 3])  # the model's reasoning has no end: an extension of grove bounds it
    put(r, body, 0.2, output_config=lambda: r.choice([{"effort": "low"}, {"format": {"type": "json_schema", "schema": an_object(r)}}]))
    body["max_tokens"] = length(r, "tools" in body or "output_config" in body)
    if maybe(r):
        body["stream"] = True
    return Ask("/v1/messages", body, whole=types.MESSAGE, event=types.MESSAGE_EVENT, law=laws.message, stream_law=laws.message_stream)


def count(r):
    body = {k: v for k, v in message(r).body.items() if k in ("model", "messages", "system", "tools", "tool_choice")}
    return Ask("/v1/messages/count_tokens", body, whole=types.COUNT, law=lambda _, answer: laws.law(answer["input_tokens"] > 0, answer))


def anthropic_models(r):
    def one(_, answer):
        model = answer["data"][0]
        same = Ask("/v1/models/" + model["id"], method="GET", anthropics=True, whole=types.ANTHROPIC_MODEL, law=lambda _, again: laws.law(again == model, again))
        return [same, Ask("/v1/models/none", method="GET", anthropics=True, wrong=True)]

    return Ask("/v1/models", method="GET", anthropics=True, whole=types.AnthropicModels, then=one)


# Ollama's chats and generations.


def ollama_common(r, body):
    put(r, body, 0.6, stream=lambda: maybe(r))
    put(r, body, 0.2, keep_alive=lambda: r.choice([-1, "5m"]), format=lambda: r.choice(["json", an_object(r)]), logprobs=lambda: maybe(r))
    if body.get("logprobs") and maybe(r):
        body["top_logprobs"] = r.randint(0, 3)
    options = {"num_predict": length(r, "format" in body or "tools" in body)}
    put(r, options, 0.3, temperature=lambda: r.choice([0, 0.7]), top_k=20, top_p=0.5, min_p=0.1, seed=lambda: r.randrange(1 << 31), stop=lambda: r.choice([["e"], ["\n", "moon"]]),
        repeat_penalty=1.1, repeat_last_n=8, num_ctx=4096)
    if maybe(r, 0.25):
        body["think"] = r.choice([True, False, "low"])
        options["reasoning_budget"] = r.choice([0, 1, 3])
    body["options"] = options


def ollama_chat(r):
    body = {"model": "grove", "messages": []}
    for m in chat_messages(r):
        if isinstance(m["content"], list):
            m["content"] = text(r)
        turn = {"role": m["role"].replace("developer", "system"), "content": m["content"] or ""}
        if "tool_calls" in m:
            turn["tool_calls"] = [{"function": {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}} for c in m["tool_calls"]]
        if m["role"] == "tool":
            turn["tool_name"] = "look_up"
        body["messages"].append(turn)
    if maybe(r, 0.4):
        body["tools"] = [{"type": "function", "function": function(r, n)} for n in names(r)]
    ollama_common(r, body)
    if "tools" in body and maybe(r):
        body["options"]["tool_choice"] = r.choice(["required", "auto", "none"])
    if maybe(r, 0.05):
        body["messages"] = []
    return Ask("/api/chat", body, whole=types.ollama.ChatResponse, event=types.ollama.ChatResponse, law=laws.ollama_whole, stream_law=laws.ollama_stream if body["messages"] else None)


def generate(r):
    body = {"model": "grove", "prompt": text(r)}
    put(r, body, 0.3, system=lambda: text(r), raw=lambda: maybe(r))
    ollama_common(r, body)
    if maybe(r, 0.05):
        body["prompt"] = ""
    return Ask("/api/generate", body, whole=types.ollama.GenerateResponse, event=types.ollama.GenerateResponse, law=laws.ollama_whole,
               stream_law=laws.ollama_stream if body["prompt"] else None)


def ollama_other(r):
    return r.choice([
        Ask("/api/tags", method="GET", whole=types.ollama.ListResponse),
        Ask("/api/ps", method="GET", whole=types.ollama.ProcessResponse),
        Ask("/api/version", method="GET", whole=types.OllamaVersion),
        Ask("/api/show", {"model": "grove"}, whole=types.ollama.ShowResponse),
        Ask("/api/embed", {"model": "grove", "input": r.choice([text(r), [text(r), text(r)], ""])}, whole=types.ollama.EmbedResponse),
        Ask("/api/embeddings", {"model": "grove", "prompt": text(r)}, whole=types.ollama.EmbeddingsResponse),
    ])
