"""What holds of an answer beyond its types: of its parts together, and of the order of a stream's events.

The laws of whole answers and of streams return what was said, without ids and times: it must be the same in both."""

import collections
import json

seen = collections.Counter()  # what answers had: a run must see each of WANTED
WANTED = [
    *(f"chat {what}" for what in ("stop", "length", "tool_calls", "function_call", "reasoning", "logprobs", "call of a custom tool", "JSON")),
    *(f"text {what}" for what in ("stop", "length", "logprobs")),
    *(f"response {what}" for what in ("completed", "incomplete", "message", "reasoning", "summary", "function_call", "custom_tool_call", "logprobs")),
    *(f"message {what}" for what in ("end_turn", "max_tokens", "stop_sequence", "tool_use", "text", "thinking")),
    *(f"ollama {what}" for what in ("stop", "length", "load", "thinking", "tool_calls", "logprobs", "JSON")),
]


class Broken(Exception):
    """A law does not hold."""


def law(holds, *what):
    if not holds:
        raise Broken(" ".join(str(w) for w in what)[:600])


def whole_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


# OpenAI's completions of chats and texts.


def choices_asked(body):
    """The numbers of the choices of a request: n for each prompt."""
    prompt = body.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1
    return list(range(prompts * (body.get("n") or 1)))


def openai_usage(usage):
    law(usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"], "the usage does not add up:", usage)
    law(usage["prompt_tokens_details"]["cached_tokens"] <= usage["prompt_tokens"], "more is cached than there is:", usage)
    law(usage["completion_tokens_details"]["reasoning_tokens"] <= usage["completion_tokens"], "more is reasoned than said:", usage)


def chat_logprobs(body, probs):
    """There are log-probabilities where they were asked for, with no more alternatives than that."""
    if not body.get("logprobs"):
        law(probs is None, "log-probabilities that were not asked for:", probs)
        return
    if probs is None:
        return
    seen["chat logprobs"] += 1
    for one in probs["content"]:
        law(one["logprob"] <= 0, "a log-probability above 0:", one)
        law(len(one["top_logprobs"]) <= body.get("top_logprobs", 0), "more alternatives than asked for:", one)


def chat_choice(body, message, finish):
    """A choice as a whole: calls, content and why it ended go together."""
    calls = message.get("tool_calls") or []
    seen["chat " + finish] += 1
    seen["chat reasoning"] += bool(message.get("reasoning_content"))
    seen["chat call of a custom tool"] += any(call["type"] == "custom" for call in calls)
    law(not (calls and message.get("function_call")), "calls of both forms:", message)
    if finish in ("tool_calls", "function_call"):
        law(calls or message.get("function_call"), "no calls:", message)
        for call in calls:
            if call["type"] == "function":
                law(whole_json(call["function"]["arguments"]), "the arguments are no JSON:", call)
    ids = [call["id"] for call in calls]
    law(len(set(ids)) == len(ids), "calls have the same id:", ids)
    if body.get("tool_choice") == "none" or not (body.get("tools") or body.get("functions")):
        law(not calls and not message.get("function_call"), "calls without tools:", message)
    shape = (body.get("response_format") or {}).get("type")
    if shape in ("json_object", "json_schema") and finish == "stop" and not body.get("stop"):
        law(whole_json(message["content"] or ""), "the content is no JSON:", message)
        seen["chat JSON"] += 1
    called = [call[call["type"]] for call in calls]
    return message["content"] or "", message.get("reasoning_content") or "", called, message.get("function_call"), finish


def chat(body, answer):
    law([c["index"] for c in answer["choices"]] == choices_asked(body), "choices:", answer["choices"])
    for c in answer["choices"]:
        chat_logprobs(body, c["logprobs"])
    openai_usage(answer["usage"])
    return [chat_choice(body, c["message"], c["finish_reason"]) for c in answer["choices"]]


def openai_stream(body, events, merge):
    """Chunks of one completion: choices end once and then are silent, the usage comes last where it is asked for, and the end is [DONE]."""
    law(events and events[-1] == (None, "[DONE]"), "the stream does not end with [DONE]:", events[-1:])
    chunks = [json.loads(data) for _, data in events[:-1]]
    law(all(name is None for name, _ in events), "events with names:", {name for name, _ in events})
    law(len({(c["id"], c["object"], c["created"], c["model"]) for c in chunks}) == 1, "the chunks have several heads")
    wanted = bool((body.get("stream_options") or {}).get("include_usage"))
    if wanted:
        last = chunks.pop()
        law(last["choices"] == [] and last["usage"], "the last chunk is not the usage:", last)
        openai_usage(last["usage"])
    choices = {}
    for chunk in chunks:
        law(len(chunk["choices"]) == 1, "not one choice in a chunk:", chunk)
        law(chunk.get("usage") is None and ("usage" in chunk) == wanted, "usage:", chunk)
        c = chunk["choices"][0]
        merge(choices, c)
    law(sorted(choices) == choices_asked(body), "choices:", sorted(choices))
    law(all(c["finish"] for c in choices.values()), "a choice does not end:", choices)
    return [c for _, c in sorted(choices.items())]


def chat_stream(body, events):
    def merge(choices, c):
        at, delta = c["index"], c["delta"]
        if at not in choices:
            law(delta.get("role") == "assistant", "the first piece has no role:", c)
            choices[at] = {"finish": None, "content": "", "reasoning_content": "", "tool_calls": [], "function_call": None}
        else:
            law("role" not in delta, "a later piece has a role:", c)
        whole = choices[at]
        law(not whole["finish"], "a piece after the end:", c)
        whole["finish"] = c["finish_reason"]
        for name in ("content", "reasoning_content"):
            whole[name] += delta.get(name) or ""
        for call in delta.get("tool_calls") or []:
            kind, said = ("custom", "input") if "custom" in call else ("function", "arguments")
            if call["index"] == len(whole["tool_calls"]):
                law(call.get("id") and call.get("type") == kind and call[kind].get("name"), "a call begins without its name:", c)
                whole["tool_calls"].append(call | {kind: {"name": call[kind]["name"], said: ""}})
            else:
                law(call["index"] == len(whole["tool_calls"]) - 1 and not call.get("id"), "a piece of another call:", c)
            whole["tool_calls"][-1][kind][said] += call[kind].get(said) or ""
        if old := delta.get("function_call"):
            if whole["function_call"] is None:
                law(old.get("name"), "a call begins without its name:", c)
                whole["function_call"] = {"name": old["name"], "arguments": ""}
            whole["function_call"]["arguments"] += old.get("arguments") or ""
        chat_logprobs(body, c["logprobs"])

    return [chat_choice(body, c, c["finish"]) for c in openai_stream(body, events, merge)]


def text_choice(body, c):
    probs = c["logprobs"]
    seen["text logprobs"] += bool(probs)
    seen[f"text {c['finish_reason']}"] += 1
    law((probs is not None) == ("logprobs" in body and body["logprobs"] is not None), "log-probabilities:", c)
    if probs:
        law(len({len(probs[k]) for k in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}) == 1, "lists of several lengths:", c)
        law(probs["text_offset"] == sorted(probs["text_offset"]), "offsets fall:", c)


def completion(body, answer):
    law([c["index"] for c in answer["choices"]] == choices_asked(body), "choices:", answer["choices"])
    for c in answer["choices"]:
        law(c["finish_reason"], "a choice does not end:", c)
        text_choice(body, c)
    openai_usage(answer["usage"])
    return [(c["text"], c["finish_reason"]) for c in answer["choices"]]


def completion_stream(body, events):
    def merge(choices, c):
        whole = choices.setdefault(c["index"], {"finish": None, "text": ""})
        law(not whole["finish"], "a piece after the end:", c)
        whole["finish"] = c["finish_reason"]
        whole["text"] += c["text"]
        text_choice(body, c)

    return [(c["text"], c["finish"]) for c in openai_stream(body, events, merge)]


# OpenAI's responses.


def response(body, answer):
    law(answer["status"] in ("completed", "incomplete"), "status:", answer["status"])
    law((answer["status"] == "incomplete") == (answer["incomplete_details"] is not None), "incomplete_details:", answer["incomplete_details"])
    usage = answer["usage"]
    law(usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"], "the usage does not add up:", usage)
    for name in ("instructions", "max_output_tokens", "metadata", "previous_response_id", "temperature", "tool_choice", "top_p", "truncation"):
        if body.get(name) is not None:
            law(answer[name] == body[name], "it was asked with", name, body[name], "and says", answer[name])
    law(answer["store"] == (body.get("store") is not False), "store:", answer["store"])
    ids = [item["id"] for item in answer["output"]]
    law(len(set(ids)) == len(ids), "items have the same id:", ids)
    seen["response " + answer["status"]] += 1
    for item in answer["output"]:
        seen["response " + item["type"]] += 1
        seen["response summary"] += bool(item.get("summary"))
        if item["type"] == "function_call" and item["status"] == "completed":
            law(whole_json(item["arguments"]), "the arguments are no JSON:", item)
        for part in item.get("content") or []:
            seen["response logprobs"] += bool(part.get("logprobs"))
            if "logprobs" in part and "message.output_text.logprobs" not in body.get("include", []) and not body.get("top_logprobs"):
                law(part["logprobs"] == [], "log-probabilities that were not asked for:", part)


TEXTS = {  # the event that adds to an item's text, where the text stands, and the event of the whole
    "response.output_text": "text",
    "response.reasoning_text": "text",
    "response.reasoning_summary_text": "text",
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}


def response_stream(body, events):
    """Events of one response: numbered, created first, each item added, filled and done in order, completed or incomplete last."""
    law(all(name == json.loads(data)["type"] for name, data in events), "an event's name is not its type")
    numbered = [json.loads(data) for _, data in events]
    law([e["sequence_number"] for e in numbered] == list(range(len(numbered))), "numbers:", [e["sequence_number"] for e in numbered])
    kinds = [e["type"] for e in numbered]
    law(kinds[:2] == ["response.created", "response.in_progress"], "it begins with", kinds[:2])
    law(kinds[-1] in ("response.completed", "response.incomplete"), "it ends with", kinds[-1])
    for e in numbered[:2]:
        law(e["response"]["status"] == "in_progress" and e["response"]["output"] == [], "it begins with", e)
    final = numbered[-1]["response"]
    law(kinds[-1] == "response." + final["status"], kinds[-1], "has the status", final["status"])
    law(len({e["response"]["id"] for e in numbered if "response" in e}) == 1, "several ids")
    done, item, part = [], None, None
    for e in numbered[2:-1]:
        kind = e["type"]
        law(kind == "response.output_item.added" or item, "no item is open:", e)
        law(e["output_index"] == len(done), "an event of another item:", e)
        if kind == "response.output_item.added":
            law(item is None, "two items are open:", e)
            item, text, whole = e["item"], "", None
            law(item.get("status", "in_progress") == "in_progress", "an item begins as", item)
        elif kind == "response.output_item.done":
            law(part is None, "an item ends with an open part:", e)
            law(e["item"]["id"] == item["id"] and e["item"]["type"] == item["type"], "an item ends as another:", item, e)
            law(whole is not None, "an item ends without its text:", e)
            said = e["item"].get("arguments", e["item"].get("input"))
            if said is None:
                said = "".join(p["text"] for p in (e["item"].get("content") or []) + e["item"].get("summary", []))
            law(said == whole, "an item has another text than its events:", repr(said), repr(whole))
            done.append(e["item"])
            item = None
        else:
            law(e["item_id"] == item["id"], "an event of another item:", e)
            if kind.endswith("_part.added"):
                law(part is None, "two parts are open:", e)
                part = e["part"]
                law(part["text"] == "", "a part begins with text:", e)
            elif kind.endswith("_part.done"):
                law(part is not None and e["part"]["text"] == whole, "a part ends with another text:", e)
                part = None
            else:
                name, _, what = kind.rpartition(".")
                law(name in TEXTS and what in ("delta", "done"), "an unknown event:", e)
                law((part is not None) == (TEXTS[name] == "text"), "text without a part:", e)
                law(whole is None, "text after its end:", e)
                if what == "delta":
                    text += e["delta"]
                else:
                    whole = e[TEXTS[name]]
                    law(whole == text, "the whole is not the sum of its pieces:", repr(whole), repr(text))
    law(item is None, "an item does not end:", item)
    law(final["output"] == done, "the response has other items than its events:", final["output"], done)
    response(body, final)


# Anthropic's messages.


def message(body, answer):
    reason = answer["stop_reason"]
    law((reason == "stop_sequence") == (answer["stop_sequence"] is not None), "stop_sequence:", answer)
    seen["message " + reason] += 1
    for block in answer["content"]:
        seen["message " + block["type"]] += 1
    calls = [b for b in answer["content"] if b["type"] == "tool_use"]
    law(reason != "tool_use" or calls, "no calls:", answer)
    law(body.get("tools") or not calls, "calls without tools:", answer)
    law(not calls or body.get("tool_choice", {}).get("type") != "none", "calls without tools:", answer)
    usage = answer["usage"]
    law(usage["output_tokens"] <= body["max_tokens"], "more tokens than asked for:", usage)
    return [{k: v for k, v in block.items() if k != "id"} for block in answer["content"]], reason, answer["stop_sequence"], usage["output_tokens"]


BLOCKS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking"), "tool_use": ("input_json_delta", "partial_json")}


def message_stream(body, events):
    """Events of one message: message_start, each block started, filled and stopped in order, message_delta, message_stop."""
    law(all(name == json.loads(data)["type"] for name, data in events), "an event's name is not its type")
    numbered = [json.loads(data) for _, data in events]
    numbered = [e for e in numbered if e["type"] != "ping"]
    kinds = [e["type"] for e in numbered]
    law(kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"], "order:", kinds)
    start, end = numbered[0]["message"], numbered[-2]
    law(start["content"] == [] and start["stop_reason"] is None and start["stop_sequence"] is None, "it begins with", start)
    blocks, block, text = [], None, ""
    for e in numbered[1:-2]:
        law(e["index"] == len(blocks), "an event of another block:", e)
        if e["type"] == "content_block_start":
            law(block is None, "two blocks are open:", e)
            block, text = e["content_block"], ""
            law(block["type"] in BLOCKS, "an unknown block:", e)
            law(block.get("text", "") == "" and block.get("thinking", "") == "" and block.get("input", {}) == {}, "a block begins with text:", e)
        elif e["type"] == "content_block_delta":
            kind, field = BLOCKS[block["type"]]
            law(e["delta"]["type"] == kind, "a piece of another kind:", e)
            text += e["delta"][field]
        else:
            law(e["type"] == "content_block_stop" and block is not None, "order:", kinds)
            if block["type"] == "tool_use":
                if end["delta"]["stop_reason"] == "tool_use":
                    law(whole_json(text or "{}"), "the input is no JSON:", text)
                text = json.loads(text) if whole_json(text) else {}
            blocks.append(block | {{"tool_use": "input"}.get(block["type"], block["type"]): text})
            block = None
    law(block is None, "a block does not end:", block)
    return message(body, start | end["delta"] | {"content": blocks, "usage": start["usage"] | end["usage"]})


# Ollama's answers.


def ollama_end(answer):
    law(answer["done"] is True and answer["done_reason"] in ("stop", "length", "load"), "the end:", answer)
    seen["ollama " + answer["done_reason"]] += 1
    if answer["done_reason"] != "load":
        for name in ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"):
            law(answer.get(name, -1) >= 0, "the end has no", name, answer)


def ollama_said(body, lines):
    """What lines say together, of which a whole answer is one."""
    said = [line.get("message") or {"content": line["response"], "thinking": line.get("thinking")} for line in lines]
    text = "".join(one["content"] for one in said)
    calls = [call for one in said for call in one.get("tool_calls", [])]
    probs = any(line.get("logprobs") for line in lines)
    seen["ollama thinking"] += any(one.get("thinking") for one in said)
    seen["ollama tool_calls"] += bool(calls)
    seen["ollama logprobs"] += probs
    law(body.get("tools") or not calls, "calls without tools:", calls)
    law(body.get("logprobs") or not probs, "log-probabilities that were not asked for:", lines)
    if body.get("format") and lines[-1]["done_reason"] == "stop" and "stop" not in body["options"]:
        law(whole_json(text) or calls, "the content is no JSON:", text)
        seen["ollama JSON"] += 1
    thought = "".join(one.get("thinking") or "" for one in said)
    return text, thought, [call["function"] for call in calls], lines[-1]["done_reason"], lines[-1].get("eval_count")


def ollama_whole(body, answer):
    ollama_end(answer)
    return ollama_said(body, [answer])


def ollama_stream(body, events):
    """Lines of one answer: done comes once, last."""
    lines = [json.loads(data) for _, data in events]
    law(lines, "no lines")
    law(all(l["done"] is False and "done_reason" not in l and "eval_count" not in l for l in lines[:-1]), "a line before the last has an end")
    ollama_end(lines[-1])
    law(len({l["model"] for l in lines}) == 1, "several models")
    return ollama_said(body, lines)
