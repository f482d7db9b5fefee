"""What a vendor's types say of an answer: what they forbid, and what they do not know."""

import datetime
import functools
import json
import typing

import anthropic.types
import ollama
import openai.types
import openai.types.chat
import openai.types.responses
import pydantic
from openai.types.shared import ErrorObject


class OpenAIError(pydantic.BaseModel):
    error: ErrorObject


class OpenAIModels(pydantic.BaseModel):
    object: typing.Literal["list"]
    data: list[openai.types.Model]


class AnthropicModels(pydantic.BaseModel):
    data: list[anthropic.types.ModelInfo]
    has_more: bool
    first_id: str | None
    last_id: str | None


class OllamaError(pydantic.BaseModel):
    error: str


class OllamaVersion(pydantic.BaseModel):
    version: str


# Fields that answers have and the types of the SDKs do not, by type, with whose they are.
ALLOWED = {
    "openai.ChatCompletion": {"timings": "llama.cpp", "metrics": "vLLM"},
    "openai.ChatCompletionChunk": {"timings": "llama.cpp", "metrics": "vLLM"},
    "openai.Completion": {"timings": "llama.cpp", "metrics": "vLLM"},
    "openai.ChatCompletionMessage": {"reasoning_content": "DeepSeek, llama.cpp", "reasoning": "vLLM, Ollama"},
    "openai.ChoiceDelta": {"reasoning_content": "DeepSeek, llama.cpp", "reasoning": "vLLM, Ollama"},
    "openai.Choice": {"stop_reason": "vLLM"},
    "openai.CompletionChoice": {"stop_reason": "vLLM"},
    "openai.ChoiceDeltaToolCall": {"custom": "OpenAI's answers (openai-openapi#576)"},
    "openai.Model": {"status": "llama.cpp", "meta": "llama.cpp", "max_model_len": "vLLM"},
    "openai.Response": {"store": "OpenAI's answers"},
    "openai.ResponseFunctionCallArgumentsDoneEvent": {"name": "OpenAI's answers"},
    "ollama.Message.ToolCall": {"id": "Ollama's API in Go"},
    "ollama.Message.ToolCall.Function": {"index": "Ollama's API in Go"},
    "ollama.ListResponse.Model": {"name": "Ollama's API in Go"},
    "ollama.ProcessResponse.Model": {"model": "Ollama's API in Go"},
    "ollama.Logprob": {"bytes": "Ollama's API in Go"},
    "ollama.TokenLogprob": {"bytes": "Ollama's API in Go"},
}

# What the types forbid and the vendor's server answers all the same: the value at a place, and why.
FORGIVEN = [
    (("choices", int, "finish_reason"), None, "the pieces of a text before its last, for which there is no type of their own"),
    (("choices", int, "delta", "tool_calls", int, "type"), "custom", "pieces of a custom tool's call (openai-openapi#576)"),
    (("choices", int, "logprobs", "token_logprobs", 0), None, "nothing precedes the first token of an echoed prompt"),
    (("choices", int, "logprobs", "top_logprobs", 0), None, "nothing precedes the first token of an echoed prompt"),
]


@functools.cache
def adapter(kind):
    return pydantic.TypeAdapter(kind)


def violations(kind, text):
    """The places of an answer that a type forbids, and the fields that it does not know, as texts."""
    try:
        found = adapter(kind).validate_json(text, strict=True)
    except pydantic.ValidationError as error:
        wrong = [e for e in error.errors(include_url=False) if not forgiven(e)]
        return [f"{place(e['loc'])}: {e['msg']}, not {str(e['input'])[:200]}" for e in wrong[:5]], []
    return [], list(unknown(json.loads(text), found, ""))


def forgiven(error):
    where = [part for part in error["loc"] if not (isinstance(part, str) and part[:1].isupper())]
    return any(
        error["input"] == value and len(where) == len(at) and all(a == b or a is int and isinstance(b, int) for a, b in zip(at, where))
        for at, value, _ in FORGIVEN
    )


def place(loc):
    return ".".join(str(part) for part in loc) or "the whole"


def unknown(raw, found, path):
    """The fields of raw that the types of what was found in it do not have."""
    if isinstance(found, pydantic.BaseModel):
        fields = {f.alias or name: name for name, f in type(found).model_fields.items()}
        for name, value in raw.items():
            if name not in fields:
                kind = type(found)
                yield kind.__module__.partition(".")[0] + "." + kind.__qualname__, name, path
            else:
                yield from unknown(value, getattr(found, fields[name]), f"{path}.{name}")
    elif isinstance(found, (list, tuple)):
        for value, item in zip(raw, found):
            yield from unknown(value, item, path + "[]")


# The types of answers, and of a stream's events.
R = openai.types.responses
CHAT, CHAT_CHUNK = openai.types.chat.ChatCompletion, openai.types.chat.ChatCompletionChunk
COMPLETION = openai.types.Completion
RESPONSE, RESPONSE_EVENT = R.Response, R.ResponseStreamEvent
INPUT_TOKENS = R.InputTokenCountResponse
EMBEDDINGS, MODEL = openai.types.CreateEmbeddingResponse, openai.types.Model
MESSAGE, MESSAGE_EVENT = anthropic.types.Message, anthropic.types.RawMessageStreamEvent
COUNT, ANTHROPIC_ERROR = anthropic.types.MessageTokensCount, anthropic.types.ErrorResponse
ANTHROPIC_MODEL = anthropic.types.ModelInfo
