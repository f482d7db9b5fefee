#!/usr/bin/env python3
"""Folders and GGUF files that grove writes, read by others: token ids, logits and metadata must be equal.

    go build -o grove ../../cmd/grove && go build -o reader ./reader
    python files.py model.gguf [--llama DIR]     compare; DIR has llama.cpp's programs
    python files.py model.gguf --golden FILE     and write the ids to FILE, for internal/convert's tests
    python files.py --kinds DIR --golden FILE    the ids of the folders in DIR, which go test -run TestReaders -folders DIR writes

Needs the packages torch, transformers, tokenizers and gguf. Exit status 1: something differs.
"""
import argparse
import array
import hashlib
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SPECIAL = ["<|im_end|>", "<|im_start|>", "<|endoftext|>", "</s>", "<s>", "<unk>", "<bos>", "<eos>", "<pad>", "<end_of_turn>", "<start_of_turn>",
           "<table>", "</b>", "<mask>", "[multimodal]", "<unused5>", "<repo_name>", "<jupyter_start>", "<0x0A>", "<0xF1>"]
WORDS = ["the", "Hello", "don't", "I'LL", "naïve", "Straße", "東京", "日本語", "こんにちは", "안녕하세요", "привет", "мир", "عربي", "हिन्दी", "ไทย", "ქართული",
         "e\u0301", "Å", "ﬁ", "Ⅳ", "½", "²", "٣", "😀", "👩‍👩‍👧", "🇩🇪", "𝔘", "𠜎", "\U000409f0", "\U000f1234", "\U0010fffd", "\ufeff", "\ufffd", "\u200b",
         "\u200d", "\u2028", "\u0085", "\u00ad", "\u2581", "▁▁", "Ġ", "12345678", "3.14", "0x1F", "1,000", "...", "?!", "--", "==>", "{\"a\": [1]}",
         "http://x.y/z?q=1&r=%20", "func main() {", "}\n", "SELECT * FROM t;", "\\n", "'s", "'S", "'re"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\u00a0", "\u3000", "\u2003", "\v", "\f", " " * 17, "\n" * 9, "\t" * 5]


def odd_texts(count, seed=43, special=()):
    """Texts of many scripts with white space, control characters, names of special tokens and long runs."""
    r = random.Random(seed)
    special = SPECIAL + list(special)
    texts = ["", " ", "\n", "\x00", " x", "x ", "a" * 400, " " * 300, "\n" * 200, "ab" * 200, "▁", "\U00040000", "0" * 120, "é" * 99, "!?" * 80]
    while len(texts) < count:
        parts = []
        for _ in range(r.randint(1, 14)):
            kind = r.random()
            if kind < .40:
                parts.append(r.choice(WORDS))
            elif kind < .62:
                parts.append(r.choice(SPACES))
            elif kind < .72:
                parts.append(r.choice(special))
            elif kind < .80:
                c = r.choice([(0, 0x20), (0x20, 0x7f), (0x80, 0x250), (0x250, 0xd800), (0xe000, 0x10000), (0x10000, 0x20000), (0x20000, 0x110000)])
                parts.append("".join(chr(r.randrange(*c)) for _ in range(r.randint(1, 4))))
            elif kind < .86:
                parts.append(r.choice("ab1 .\n\t中é😀-'") * r.randint(2, 70))
            else:
                parts.append("".join(r.choice("etaoinshrdlu ETAOIN,.'") for _ in range(r.randint(1, 30))))
            if r.random() < .35:
                parts.append(" ")
        texts.append("".join(parts))
    return texts[:count]


def run(*args, stdin=""):
    p = subprocess.run([str(a) for a in args], input=stdin, capture_output=True, text=True)
    if p.returncode:
        sys.exit(f"{' '.join(map(str, args))}: {p.stderr.strip()}")
    return p.stdout


def lines(values):
    return "".join(json.dumps(v) + "\n" for v in values)


def grove_ids(o, path, texts, *plain):
    return [json.loads(x) for x in run(o.reader, "tokens", path, *plain, stdin=lines(texts)).splitlines()]


def llama_ids(o, path, texts):
    out = []
    with tempfile.NamedTemporaryFile() as f:
        for text in texts:
            Path(f.name).write_bytes(text.encode())
            p = run(o.llama / "llama-tokenize", "-m", path, "-f", f.name, "--ids", "--no-escape", "--log-disable")
            out.append(json.loads(p.strip().splitlines()[-1]))
    return out


class Report:
    def __init__(self):
        self.failed = False

    def same(self, what, texts, got, want):
        wrong = [i for i in range(len(want)) if got[i] != want[i]]
        print(f"{what}: {len(want) - len(wrong)} of {len(want)} equal")
        for i in wrong[:5]:
            print(f"    {texts[i]!r}\n        {got[i]}\n        {want[i]}")
        self.failed |= bool(wrong)

    def check(self, what, ok):
        print(f"{what}: {'equal' if ok else 'DIFFERS'}")
        self.failed |= not ok


def hf_ids(folder, texts):
    """Ids by transformers, and by tokenizers with the names of control tokens as text."""
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer
    auto = AutoTokenizer.from_pretrained(folder)
    plain = Tokenizer.from_file(str(folder / "tokenizer.json"))
    plain.encode_special_tokens = True
    return [auto.encode(t) for t in texts], [plain.encode(t).ids for t in texts]


def folder_hash(folder):
    h = hashlib.sha256()
    for name in ["tokenizer.json", "tokenizer_config.json"]:
        h.update((folder / name).read_bytes())
    return h.hexdigest()


def logits(o, report, folder, files):
    """The folder's logits by transformers in F32 against grove's of all files."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    tok = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    text = Path(__file__).read_text()
    ids = [tok.encode(t)[:200] for t in [text, "The capital of France is Paris. " * 20, "".join(WORDS)]]
    with torch.no_grad():
        want = torch.cat([model(torch.tensor([x])).logits[0].float() for x in ids])
    p = torch.log_softmax(want.double(), -1)
    for path in files:
        with tempfile.NamedTemporaryFile() as f:
            run(o.reader, "logits", path, f.name, stdin=lines(ids))
            a = array.array("f")
            a.frombytes(Path(f.name).read_bytes())
        got = torch.tensor(a).view(want.shape)
        q = torch.log_softmax(got.double(), -1)
        kl = float((p.exp() * (p - q)).sum(-1).mean())
        top = int((want.argmax(-1) == got.argmax(-1)).sum())
        print(f"logits of {path.name}: mean KL {kl:.2g}, largest difference {float((want - got).abs().max()):.2g}, "
              f"same best token at {top} of {len(want)} positions")
        report.check(f"logits of {path.name}", kl < 1e-6 and top == len(want))
    return model


def perplexity(o, report, model, folder, path):
    """llama.cpp's perplexity of a file against transformers' of the folder, over the same windows of 256 tokens."""
    import torch
    from transformers import AutoTokenizer
    tok = AutoTokenizer.from_pretrained(folder)
    # llama-perplexity takes names of special tokens as text, transformers as tokens: lines without any
    text = "".join(line for line in Path(__file__).read_text().splitlines(True) if "<" not in line) * 2
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(text)
        f.flush()
        out = run("sh", "-c", f"'{o.llama}/llama-perplexity' -m '{path}' -f '{f.name}' -c 256 -b 256 2>&1")
    got = float(re.search(r"Final estimate: PPL = ([\d.]+)", out)[1])
    ids = tok.encode(text)
    total = count = 0
    for at in range(0, len(ids) - 255, 256):
        window = ids[at:at + 256]
        if tok.bos_token_id is not None and ids[0] == tok.bos_token_id:
            window[0] = tok.bos_token_id
        with torch.no_grad():
            lp = torch.log_softmax(model(torch.tensor([window])).logits[0].float(), -1)
        for i in range(128, 255):
            total -= float(lp[i, window[i + 1]])
            count += 1
    want = math.exp(total / count)
    print(f"perplexity: llama.cpp of {path.name} {got:.4f}, transformers of the folder {want:.4f}")
    report.check("perplexity", abs(got / want - 1) < 1e-3)


def metadata(report, a, b):
    import gguf

    def keys(path):
        r = gguf.GGUFReader(path)
        # What follows from the type of the weights, or says the default.
        skip = re.compile(r"GGUF|general\.(file_type|quantization_version)|tokenizer\.ggml\.(scores|add_(bos|eos|sep)_token|add_space_prefix|pre)")
        return {k: f.contents() for k, f in r.fields.items() if re.match(r"general|tokenizer", k) and not skip.match(k)}

    x, y = keys(a), keys(b)
    for k in sorted(x.keys() | y.keys()):
        if x.get(k) != y.get(k):
            print(f"    {k}: {str(x.get(k))[:200]} became {str(y.get(k))[:200]}")
    report.check("metadata from file to folder to file", x == y)


def compare(o, path):
    report, special = Report(), []
    work = Path(tempfile.mkdtemp(prefix="files-", dir=o.work))
    folder, back, small = work / "folder", work / "back.gguf", work / "small.gguf"
    run(o.grove, "convert", path, folder, "--type", "f32")
    run(o.grove, "convert", folder, back, "--type", "f32")
    run(o.grove, "quantize", back, small, "--type", "q8_0")
    with open(folder / "tokenizer.json") as f:
        added = [t["content"] for t in json.load(f)["added_tokens"]]
    special = random.Random(1).sample(added, min(40, len(added)))
    texts = odd_texts(o.texts, special=special)
    want, plain = hf_ids(folder, texts)
    for p in [path, folder, back, small]:
        report.same(f"ids of {p.name}, grove against transformers", texts, grove_ids(o, p, texts), want)
        report.same(f"ids of {p.name} without control tokens, grove against tokenizers", texts, grove_ids(o, p, texts, "plain"), plain)
    metadata(report, path, back)
    if o.golden:
        golden = {"model": path.name, "folder": folder_hash(folder), "texts": texts,
                  "ids": [hashlib.sha256(json.dumps(x, separators=(",", ":")).encode()).hexdigest()[:12] for x in want]}
        o.golden.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    model = logits(o, report, folder, [folder, back])
    if o.llama:
        perplexity(o, report, model, folder, back)
        for p in [path, small]:
            report.same(f"ids of {p.name}, llama.cpp against transformers", texts, llama_ids(o, p, texts), want)
    return report.failed


def kinds(o):
    golden = {}
    for folder in sorted(p for p in o.kinds.iterdir() if p.is_dir()):
        with open(folder / "tokenizer.json") as f:
            added = [t["content"] for t in json.load(f)["added_tokens"]]
        texts = odd_texts(40, seed=7, special=added)
        special, plain = hf_ids(folder, texts)
        golden[folder.name] = {"folder": folder_hash(folder), "texts": texts, "ids": special, "plain": plain}
    o.golden.write_text(json.dumps(golden, separators=(",", ":")).replace('"},', '"},\n') + "\n")
    return False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", type=Path, nargs="*", help="GGUF file")
    p.add_argument("--grove", type=Path, default="./grove")
    p.add_argument("--reader", type=Path, default="./reader")
    p.add_argument("--llama", type=Path, help="folder of llama.cpp's programs")
    p.add_argument("--work", type=Path, help="folder for what is written")
    p.add_argument("--texts", type=int, default=1000)
    p.add_argument("--golden", type=Path)
    p.add_argument("--kinds", type=Path)
    o = p.parse_args()
    for name in ["grove", "reader"]:
        setattr(o, name, Path(getattr(o, name)).absolute())
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if o.kinds:
        sys.exit(kinds(o))
    sys.exit(any([compare(o, path) for path in o.model]))


if __name__ == "__main__":
    main()
