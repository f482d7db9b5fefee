"""Random requests to OpenAI's endpoints."""

import json

import laws
import vendor_types as types
from basics import *

# OpenAI's chats and texts.


def sampled(r, body):
    put(r, body, 0.3, temperature=lambda: r.choice([0, 0.5, 1, 1.0, 2]), top_p=lambda: r.choice([0.1, 1, 0.5]), seed=lambda: r.randrange(1 << 31),
        presence_penalty=lambda: r.uniform(-2, 2), frequency_penalty=0.5, logit_bias=lambda: {str(r.randrange(200)): r.randint(-100, 100)},
        stop=lambda: r.choice(["e", ["\n", "moon"], "zzzz"]), user="somebody")


def streamed(r, body):
    if maybe(r):
        body["stream"] = True
        put(r, body, 0.5, stream_options=lambda: {"include_usage": maybe(r)})


def chat_messages(r):
    list_ = []
    if maybe(r, 0.3):
        list_.append({"role": r.choice(["system", "developer"]), "content": text(r)})
    for _ in range(r.randint(0, 2)):
        list_.append({"role": "user", "content": text(r)})
        if maybe(r, 0.4):
            ids = [f"call_{len(list_)}_{i}" for i in range(r.randint(1, 2))]
            calls = [{"id": i, "type": "function", "function": {"name": r.choice(["look_up", "add"]), "arguments": json.dumps(arguments(r))}} for i in ids]
            list_.append({"role": "assistant", "content": r.choice([None, "", text(r)]), "tool_calls": calls})
            list_ += [{"role": "tool", "tool_call_id": i, "content": r.choice([text(r), parts(r)])} for i in ids]
        else:
            list_.append({"role": "assistant", "content": text(r)})
    return list_ + [{"role": "user", "content": r.choice([text(r), parts(r)])}]


def chat_tools(r, body):
    named = names(r)
    kind = r.random()
    if kind < 0.25:
        body["functions"] = [function(r, n) for n in named]
        put(r, body, 0.8, function_call=lambda: r.choice(["auto", "none", {"name": named[0]}, {"name": named[0]}]))
        return
    body["tools"] = [{"type": "function", "function": function(r, n)} for n in named]
    if kind < 0.45:
        body["tools"].append({"type": "custom", "custom": {"name": "note", "description": "takes a text"}})
    one = {"type": "function", "function": {"name": named[0]}}
    put(r, body, 0.7, tool_choice=lambda: r.choice(["auto", "none", "required", one, {"type": "allowed_tools", "allowed_tools": {"mode": r.choice(["auto", "required"]), "tools": [one]}}]))
    put(r, body, 0.4, parallel_tool_calls=lambda: maybe(r))
    if kind < 0.45 and maybe(r):
        body["tool_choice"] = {"type": "custom", "custom": {"name": "note"}}


def reasoning(r, body):
    if maybe(r, 0.2):
        body["chat_template_kwargs"] = {"enable_thinking": True}
        body["reasoning_budget"] = r.choice([0, 1, 3])


def chat(r):
    body = {"model": "grove", "messages": chat_messages(r)}
    sampled(r, body)
    streamed(r, body)
    put(r, body, 0.2, n=lambda: r.randint(1, 3), prediction=lambda: {"type": "content", "content": text(r)}, metadata={"a": "b"}, store=False, service_tier="auto",
        reasoning_effort=lambda: r.choice(["none", "low", "high"]))
    reasoning(r, body)
    if maybe(r, 0.3):
        body["logprobs"] = True
        put(r, body, 0.6, top_logprobs=lambda: r.randint(0, 3))
    if maybe(r, 0.35):
        chat_tools(r, body)
    if maybe(r, 0.25):
        body["response_format"] = r.choice([{"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "thing", "strict": True, "schema": an_object(r)}}])
    body[r.choice(["max_tokens", "max_completion_tokens"])] = length(r, "tools" in body or "functions" in body or "response_format" in body)
    return Ask("/v1/chat/completions", body, whole=types.CHAT, event=types.CHAT_CHUNK, law=laws.chat, stream_law=laws.chat_stream)


def tokens(r):
    return [r.randrange(300) for _ in range(r.randint(1, 6))]


def completion(r):
    body = {"model": "grove", "prompt": r.choice([text(r), [text(r), text(r)], tokens(r), [tokens(r), tokens(r)]]), "max_tokens": length(r, False)}
    sampled(r, body)
    streamed(r, body)
    put(r, body, 0.2, n=lambda: r.randint(1, 3), echo=lambda: maybe(r))
    put(r, body, 0.4, logprobs=lambda: r.randint(0, 3))
    if maybe(r, 0.2):
        body["best_of"] = body.get("n", 1)
    return Ask("/v1/completions", body, whole=types.COMPLETION, event=types.COMPLETION, law=laws.completion, stream_law=laws.completion_stream)


def embeddings(r):
    body = {"model": "grove", "input": r.choice([text(r), [text(r), text(r), "one"], tokens(r), [tokens(r)]])}
    put(r, body, 0.4, dimensions=lambda: r.randint(1, 8), user="somebody")
    put(r, body, 0.3, encoding_format="float")

    def law(body, answer):
        prompt = body["input"]
        count = len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1
        laws.law([d["index"] for d in answer["data"]] == list(range(count)), "embeddings:", [d["index"] for d in answer["data"]])
        if "dimensions" in body:
            laws.law(all(len(d["embedding"]) == body["dimensions"] for d in answer["data"]), "not the dimensions asked for")

    return Ask("/v1/embeddings", body, whole=types.EMBEDDINGS, law=law)


def openai_models(r):
    def one(_, answer):
        return [Ask("/v1/models/" + answer["data"][0]["id"], method="GET", whole=types.MODEL)]

    return Ask("/v1/models", method="GET", whole=types.OpenAIModels, then=one)


# OpenAI's responses.


def items(r):
    list_ = []
    for _ in range(r.randint(0, 2)):
        list_.append({"role": "user", "content": r.choice([text(r), parts(r, "input_text")])})
        kind = r.random()
        if kind < 0.4:
            at = f"call_{len(list_)}"
            list_.append({"type": "function_call", "call_id": at, "name": "look_up", "arguments": json.dumps(arguments(r))})
            list_.append({"type": "function_call_output", "call_id": at, "output": r.choice([text(r), parts(r, "input_text")])})
        elif kind < 0.6:
            list_.append({"type": "reasoning", "id": f"rs_{len(list_)}", "summary": [], "content": [{"type": "reasoning_text", "text": text(r)}]})
        if kind > 0.4:
            list_.append({"type": "message", "role": "assistant", "id": f"msg_{len(list_)}", "status": "completed",
                          "content": [{"type": "output_text", "text": text(r), "annotations": []}]})
    return list_ + [{"type": "message", "role": r.choice(["user", "user", "developer"]), "content": text(r)}]


def response_tools(r, body):
    named = names(r)
    body["tools"] = [{"type": "function", "strict": maybe(r)} | function(r, n) for n in named]
    choices = ["auto", "none", "required", {"type": "function", "name": named[0]},
               {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": named[0]}]}]
    if maybe(r, 0.3):
        body["tools"].append({"type": "custom", "name": "note", "description": "takes a text", "format": {"type": "text"}})
        choices = [{"type": "custom", "name": "note"}]
    if maybe(r, 0.2):
        body["tools"].append({"type": "namespace", "name": "home", "description": "a house", "tools": [{"type": "function"} | function(r, "open")]})
    if maybe(r, 0.2):
        body["tools"].append({"type": "web_search"})
    put(r, body, 0.7, tool_choice=lambda: r.choice(choices))
    put(r, body, 0.4, parallel_tool_calls=lambda: maybe(r))


def response(r, previous=None):
    body = {"model": "grove", "input": r.choice([text(r), items(r)])}
    put(r, body, 0.3, instructions=lambda: text(r), temperature=lambda: r.choice([0, 0.5, 1.5]), top_p=lambda: r.choice([0.5, 1]), metadata={"a": "b"},
        truncation=lambda: r.choice(["auto", "disabled"]), store=lambda: maybe(r), user="somebody", service_tier="auto", prompt_cache_key="k")
    put(r, body, 0.3, include=lambda: r.choice([[], ["message.output_text.logprobs"], ["reasoning.encrypted_content"]]), top_logprobs=lambda: r.randint(0, 3))
    put(r, body, 0.3, reasoning=lambda: {"effort": r.choice(["none", "low", "high"])} | ({"summary": r.choice(["auto", "detailed"])} if maybe(r) else {}))
    put(r, body, 0.25, text=lambda: {"format": r.choice([{"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "name": "thing", "schema": an_object(r), "strict": True}])}
        | ({"verbosity": "medium"} if maybe(r) else {}))
    if maybe(r, 0.5):
        response_tools(r, body)
    reasoning(r, body)
    if "reasoning" in body:
        body["reasoning_budget"] = r.choice([0, 2])
    body["max_output_tokens"] = length(r, "tools" in body or "text" in body)
    if previous:
        body["previous_response_id"] = previous
    if maybe(r):
        body["stream"] = True

    def then(body, answer):
        path = "/v1/responses/" + answer["id"]
        gone = Ask(path, method="GET", wrong=True)
        if body.get("store") is False:
            return [gone]
        kept = Ask(path, method="GET", whole=types.RESPONSE, law=lambda _, again: laws.law(again == answer, "another answer is kept"))
        if not previous and maybe(r):
            return [kept, seeded(r, response(r, answer["id"]))]
        return [kept, Ask(path, method="DELETE", whole=dict, law=lambda _, a: laws.law(a["id"] == answer["id"] and a["deleted"] is True, a)), gone]

    return Ask("/v1/responses", body, whole=types.RESPONSE, event=types.RESPONSE_EVENT, law=laws.response, stream_law=laws.response_stream,
               then=then if maybe(r, 0.3) else None)


def input_tokens(r):
    ask = response(r)
    return Ask("/v1/responses/input_tokens", {k: v for k, v in ask.body.items() if k not in ("stream", "store", "include", "metadata")}, whole=types.INPUT_TOKENS,
               law=lambda _, answer: laws.law(answer["input_tokens"] > 0, answer))
