"""Random requests of every protocol, valid and wrong, with what their answers must be."""

import dataclasses
import json
import typing

import laws
import vendor_types as types

WORDS = "sun moon tree river { } [ ] \" \\ \n \t func return 7 3.5 é 漢字 🌲 <think> </think> <tool_call> the a is of red-green, Hello! a: b;".split(" ")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclasses.dataclass
class Ask:
    """A request, the types of its answer and of its stream's events, and the laws of both."""

    path: str
    body: dict | None = None
    method: str = "POST"
    whole: typing.Any = None
    event: typing.Any = None
    law: typing.Callable = lambda body, answer: None
    stream_law: typing.Callable | None = None
    wrong: bool = False  # it is refused
    hurried: bool = False  # it may end with an error, since it has little time
    headers: dict = dataclasses.field(default_factory=dict)
    then: typing.Callable | None = None  # makes further requests of the answer

    anthropics: bool = False  # of a path that is OpenAI's too

    @property
    def anthropic(self):
        return self.anthropics or self.path.startswith("/v1/messages")

    @property
    def streams(self):
        if self.wrong or not self.stream_law or self.body is None:
            return False
        return self.body.get("stream", self.path.startswith("/api/"))


def maybe(r, chance=0.5):
    return r.random() < chance


def text(r, most=8):
    return " ".join(r.choice(WORDS) for _ in range(r.randint(1, most)))


def put(r, body, chance, **fields):
    """Adds each field by chance; the values are made only then."""
    for name, value in fields.items():
        if maybe(r, chance):
            body[name] = value() if callable(value) else value


def schema(r, depth=0):
    kind = r.choice(["string", "integer", "boolean", "enum", "array", "object"] if depth < 2 else ["boolean", "enum"])
    if kind == "enum":
        return {"enum": r.sample(["red", "green", 1, 2.5, None, True, "漢"], r.randint(1, 4))}
    if kind == "string":
        return {"type": "string", "maxLength": r.randint(0, 4)}
    if kind == "integer":
        return {"type": "integer", "minimum": 0, "maximum": r.randint(0, 20)}
    if kind == "array":
        return {"type": "array", "items": schema(r, depth + 1), "maxItems": r.randint(0, 2)}
    if kind == "object":
        return an_object(r, depth + 1)
    return {"type": kind}


def an_object(r, depth=0):
    names = r.sample(["a", "b_2", "color", "größe"], r.randint(0, 3))
    return {"type": "object", "properties": {n: schema(r, depth + 1) for n in names}, "required": r.sample(names, r.randint(0, len(names))),
            "additionalProperties": False}


def names(r):
    return r.sample(["look_up", "add", "get-weather", "Turn_On2"], r.randint(1, 3))


def arguments(r):
    return {"a": r.choice([1, "x", None, [True]]), "b_2": text(r, 2)} if maybe(r) else {}


def function(r, name):
    f = {"name": name, "parameters": an_object(r)}
    put(r, f, 0.5, description=lambda: text(r))
    return f


# OpenAI's chats and texts.


def sampled(r, body):
    put(r, body, 0.3, temperature=lambda: r.choice([0, 0.5, 1, 1.0, 2]), top_p=lambda: r.choice([0.1, 1, 0.5]), seed=lambda: r.randrange(1 << 31),
        presence_penalty=lambda: r.uniform(-2, 2), frequency_penalty=0.5, logit_bias=lambda: {str(r.randrange(200)): r.randint(-100, 100)},
        stop=lambda: r.choice(["e", ["\n", "moon"], "zzzz"]), user="somebody")


def streamed(r, body):
    if maybe(r):
        body["stream"] = True
        put(r, body, 0.5, stream_options=lambda: {"include_usage": maybe(r)})


def parts(r, kind="text"):
    return [{"type": kind, "text": text(r)} for _ in range(r.randint(1, 2))]


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


def length(r, held):
    """How many tokens: few, and enough for what is held to a form now and then."""
    return r.choice([1, 5, 60, 60]) if held else r.choice([1, 1, 2, 3, 8])


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
    put(r, body, 0.3, thinking=lambda: r.choice([{"type": "disabled"}, {"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}]))
    if "thinking" in body and body["thinking"]["type"] != "disabled":
        body["thinking"].pop("budget_tokens", None)  # the model's reasoning has no end: an extension of grove bounds it
        body["thinking"]["type"] = "adaptive"
        body["reasoning_budget"] = r.choice([0, 1, 3])
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


# Requests that are refused.


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


def seeded(r, ask):
    """Has an answer be the same each time, where the request does not say how. In some protocols seed is an extension of grove."""
    if ask.body is not None and not ask.wrong:
        body = ask.body.setdefault("options", {}) if ask.path in ("/api/chat", "/api/generate") else ask.body
        body.setdefault("seed", r.randrange(1 << 31))
    return ask


def random_ask(r):
    kinds = {chat: 24, completion: 12, response: 20, input_tokens: 3, embeddings: 4, openai_models: 2, message: 18, count: 3, anthropic_models: 2, ollama_chat: 12, generate: 8, ollama_other: 6, refused: 12, late: 1}
    return seeded(r, r.choices(list(kinds), kinds.values())[0](r))
