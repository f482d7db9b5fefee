#!/usr/bin/env python3
"""Tokenizers in other files than tokenizer.json, with texts and their ids, and Mistral's layout of conversations.

    pip install mistral-common==1.13.1 tiktoken==0.14.0 sentencepiece==0.2.3
    python makejson.py ../../README.md ../../docs/library.md ../../docs/laws.md > makejson.json

The vocabularies are trained on the files named. Expected ids and layouts are those of the packages.
"""
import base64
import io
import json
import sys
import tempfile
from pathlib import Path

import sentencepiece
import tiktoken
from mistral_common.protocol.instruct.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.tool_calls import Function, FunctionCall, Tool, ToolCall
from mistral_common.tokens.tokenizers.base import SpecialTokens
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from tiktoken._educational import bpe_train

sys.path.insert(0, str(Path(__file__).parents[2] / "internal/_conformance"))
from files import odd_texts

CASED = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}"
TEKKEN = (rf"[^\r\n\p{{L}}\p{{N}}]?{CASED}]*{SMALL}]+|[^\r\n\p{{L}}\p{{N}}]?{CASED}]+{SMALL}]*|"
          r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
HAN = r"&&[^\p{Han}]]"
ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
KIMI = (rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{CASED}{HAN}*{SMALL}{HAN}+{ENDS}|[^\r\n\p{{L}}\p{{N}}]?{CASED}{HAN}+{SMALL}{HAN}*{ENDS}|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
corpus = "\n\n".join(Path(p).read_text() for p in sys.argv[1:])
texts = [t for t in odd_texts(90) if "\0" not in t and len(t) < 200] + corpus.split("\n\n")[:12]


def tekken(folder, version, tokens):
    specials = 60
    file = {"config": {"pattern": TEKKEN, "num_vocab_tokens": len(tokens), "default_vocab_size": specials + len(tokens) - 10,
                       "default_num_special_tokens": specials, "version": version},
            "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)]}
    if version in ("v11", "v13"):
        file["special_tokens"] = [{"rank": i, "token_str": t.value, "is_control": True} for i, t in enumerate(SpecialTokens)]
    path = folder / f"tekken-{version}.json"
    path.write_text(json.dumps(file))
    return file, path


def conversations():
    tools = [{"type": "function", "function": {"name": "weather", "description": "says <how> it is", "parameters": {
        "type": "object", "properties": {"place": {"type": "string"}}}}}]
    call = lambda id, place: {"id": id, "type": "function", "function": {"name": "weather", "arguments": json.dumps({"place": place}, ensure_ascii=False)}}
    system, hello, again = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello [INST]"}, {"role": "user", "content": "And now?"}
    calls = {"role": "assistant", "content": "", "tool_calls": [call("abcdefghi", "Köln"), call("jklmnopqr", "Ulm")]}
    results = [{"role": "tool", "tool_call_id": "abcdefghi", "content": "rain"}, {"role": "tool", "tool_call_id": "jklmnopqr", "content": "7 °C \"cold\""}]
    done = {"role": "assistant", "content": "It rains."}
    for messages, tools in (([hello], None), ([system, hello], None), ([hello, done, again], None), ([system, hello, done, again], tools),
                            ([system, hello, calls, *results, done, again], tools), ([hello, calls, *results], tools), ([hello, again, done, again], None)):
        yield messages, tools


def message(m):
    if m["role"] == "assistant":
        calls = [ToolCall(id=c["id"], function=FunctionCall(**c["function"])) for c in m.get("tool_calls", [])]
        return AssistantMessage(content=m["content"] or None, tool_calls=calls or None)
    kind = {"system": SystemMessage, "user": UserMessage, "tool": ToolMessage}[m["role"]]
    return kind(**{k: v for k, v in m.items() if k != "role"})


def main():
    out = {"texts": texts}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ranks = bpe_train(corpus, 600, TEKKEN, visualise=None)
        tokens = sorted(ranks, key=ranks.get)
        file, path = tekken(folder, "v3", tokens)
        model = Tekkenizer.from_file(path)
        out["tekken"] = {"file": file, "ids": [model.encode(t, bos=False, eos=False) for t in texts]}
        out["layouts"], out["specials"] = [], [{"rank": i, "token_str": t.value, "is_control": True} for i, t in enumerate(SpecialTokens)]
        for version in ("v3", "v7", "v11", "v13"):
            file, path = tekken(folder, version, tokens)
            layout = MistralTokenizer.from_file(str(path))
            for messages, tools in conversations():
                request = ChatCompletionRequest(messages=[message(m) for m in messages], tools=tools and [Tool(function=Function(**t["function"])) for t in tools])
                out["layouts"].append({"version": version, "messages": messages, "tools": tools,
                                       "ids": layout.encode_chat_completion(request).tokens})
        model = tiktoken.Encoding("kimi", pat_str=KIMI, mergeable_ranks={t: i for i, t in enumerate(tokens)}, special_tokens={})
        out["tiktoken"] = {"file": "".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens)),
                           "ids": [model.encode(t, disallowed_special=()) for t in texts]}
        # a space in front of a text comes, as in llama.cpp, behind a user-defined token too: SentencePiece does not put one there
        for name, front in (("sentencepiece", True), ("sentencepiece-no-space", False)):
            buffer = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(corpus.split("\n")), model_writer=buffer, model_type="bpe", vocab_size=520, byte_fallback=True,
                normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=front, character_coverage=.98,
                control_symbols=["<|extra|>"], user_defined_symbols=[] if front else ["<tool>", "\n\n"], minloglevel=2)
            model = sentencepiece.SentencePieceProcessor(model_proto=buffer.getvalue())
            out[name] = {"file": base64.b64encode(buffer.getvalue()).decode(), "ids": [model.encode(t) for t in texts]}
    json.dump(out, sys.stdout, ensure_ascii=False, separators=(",", ":"))


main()
