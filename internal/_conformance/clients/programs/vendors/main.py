"""Random requests of every protocol to the server at GROVE_URL: each answer and each event of a stream is held to its vendor's types and to the laws of its order."""

import argparse
import collections
import dataclasses
import http.client
import json
import os
import random
import sys
import threading
import traceback
import urllib.parse
from concurrent import futures

import asks
import laws
import vendor_types as types

ADDRESS = urllib.parse.urlsplit(os.environ["GROVE_URL"]).netloc
THREADS = 4


def error_type(ask):
    if ask.path.startswith("/api/"):
        return types.OllamaError
    return types.ANTHROPIC_ERROR if ask.anthropic else types.OpenAIError


def call(ask, show=False):
    """The violations of the answer to a request, its unknown fields, and the answer."""
    link = http.client.HTTPConnection(ADDRESS, timeout=600)
    try:
        headers = {"Content-Type": "application/json"} | ask.headers
        if ask.anthropic:
            headers["Anthropic-Version"] = "2023-06-01"
        link.request(ask.method, ask.path, None if ask.body is None else json.dumps(ask.body), headers)
        answer = link.getresponse()
        raw = answer.read()
    finally:
        link.close()
    if show:
        print(answer.status, raw.decode(), file=sys.stderr)
    kind = answer.headers["Content-Type"].partition(";")[0]
    if ask.wrong or ask.hurried and answer.status in (429, 504):
        return refusal(ask, answer, kind, raw)
    if answer.status != 200:
        return [f"status {answer.status}: {raw.decode()[:500]}"], [], None
    if not ask.streams:
        wrong, unknown = types.violations(ask.whole, raw)
        if kind != "application/json":
            wrong.append(f"the content is of type {kind}")
        return wrong or broken(ask.law, ask, json.loads(raw)), unknown, json.loads(raw)
    lines = ask.path.startswith("/api/")
    if kind != ("application/x-ndjson" if lines else "text/event-stream"):
        return [f"the stream is of type {kind}"], [], None
    events = [(None, line) for line in raw.decode().rstrip("\n").split("\n")] if lines else list(sent_events(raw.decode()))
    wrong, unknown = [], []
    if ask.hurried and (fault := json.loads(events[-1][1]) if events[-1][1] != "[DONE]" else {}) and ("error" in fault or fault.get("type") == "error"):
        if ask.path != "/v1/responses":
            wrong, unknown = types.violations(error_type(ask), events.pop()[1])
        ask.stream_law = lambda body, events: laws.law("[DONE]" not in [data for _, data in events], "an error and [DONE]")
    for name, data in events:
        if data != "[DONE]" and name != "ping":
            new, more = types.violations(ask.event, data)
            wrong += [f"{w} in {data[:300]}" for w in new]
            unknown += more
    last = json.loads(events[-1][1]) if events and events[-1][1] != "[DONE]" else {}
    return wrong or broken(ask.stream_law, ask, events), unknown, last.get("response")


def without_stream(ask):
    """The same request without a stream, which must say the same."""
    said = ask.said

    def law(body, answer):
        whole = ask.law(body, answer)
        laws.law(whole == said, "the whole answer is not the stream's:", whole, said)

    body = {k: v for k, v in ask.body.items() if k != "stream_options"} | {"stream": False}
    return dataclasses.replace(ask, body=body, law=law, then=None, said=None)


def sent_events(text):
    """Server-sent events: a name or none, and the data."""
    if not text.endswith("\n\n"):
        yield None, '"the stream is cut"'
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if fields:
            yield fields.get("event"), fields["data"]


def refusal(ask, answer, kind, raw):
    if not 400 <= answer.status < 500 and not ask.hurried:
        return [f"status {answer.status}, want a refusal: {raw.decode()[:300]}"], [], None
    if kind != "application/json":
        return [f"the refusal is of type {kind}"], [], None
    wrong, unknown = types.violations(error_type(ask), raw)
    return wrong, unknown, None


def broken(law, ask, answer):
    try:
        ask.said = law(ask.body or {}, answer)
    except laws.Broken as e:
        return [str(e)]
    except (KeyError, TypeError, IndexError):  # a law looks for what is not there
        return [traceback.format_exc(limit=-1)]
    return []


class Run:
    """What came of a run's requests."""

    def __init__(self, seed):
        self.seed, self.done = seed, 0
        self.lock = threading.Lock()
        self.failed, self.unknown, self.asked = [], collections.Counter(), collections.Counter()

    def one(self, number, show=False):
        """A random request, and those that it leads to."""
        waiting = [asks.random_ask(random.Random(f"{self.seed}/{number}"))]
        while waiting:
            ask = waiting.pop(0)
            if show:
                print(ask.method, ask.path, json.dumps(ask.body), file=sys.stderr)
            try:
                wrong, unknown, answer = call(ask, show)
            except Exception as e:
                wrong, unknown, answer = [f"{type(e).__name__}: {e}"], [], None
            with self.lock:
                self.done += 1
                self.asked["refused" if ask.wrong else "late" if ask.hurried else "Anthropic's " * ask.anthropic + ask.method + " " + ask.path.replace("resp_", "\0").split("\0")[0], ask.streams] += 1
                for kind, name, path in unknown:
                    if name not in types.ALLOWED.get(kind, {}):
                        wrong.append(f"{kind} has no field {name!r} (at {path or 'the top'})")
                    self.unknown[kind, name] += 1
                if wrong:
                    self.failed.append(f"request {number}: {ask.method} {ask.path} {json.dumps(ask.body)[:400]}\n  " + "\n  ".join(sorted(set(wrong))[:8]))
            if ask.streams and ask.said is not None and not wrong:
                waiting.append(without_stream(ask))
            if ask.then and answer and not wrong:
                waiting += ask.then(ask.body, answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=48)
    parser.add_argument("--only", type=int, help="the number of one request, which is made again and shown")
    options = parser.parse_args()
    run = Run(options.seed)
    if options.only is not None:
        run.one(options.only, show=True)
    else:
        with futures.ThreadPoolExecutor(THREADS) as pool:
            collections.deque(pool.map(run.one, range(options.requests)), 0)
    for (what, streams), n in sorted(run.asked.items()):
        print(f"{n:5} {what}{', streamed' if streams else ''}")
    for (kind, name), n in sorted(run.unknown.items()):
        print(f"{n:5} {kind}.{name}: {types.ALLOWED.get(kind, {}).get(name, 'not allowed')}")
    missing = [what for what in laws.WANTED if not laws.seen[what]]
    for what in laws.WANTED:
        print(f"{laws.seen[what]:5} {what}")
    print(f"{len(run.failed)} of {run.done} requests have violations")
    for failure in run.failed[:40]:
        print(failure)
    if missing and options.only is None and options.requests >= 1000:
        sys.exit(f"no answer has {', '.join(missing)}: the requests test too little")
    sys.exit(bool(run.failed))


main()
