"""Writes what Python's jinja2 makes of templates, set up as Hugging Face's transformers does it.

    python golden.py            writes snippets.json.gz, programs.json.gz, templates.json.gz and matrix.json.gz
    python golden.py FOLDER     writes others.json.gz: the templates (*.jinja) of a folder, which are not in this repository

Wants transformers (5.x) and jinja2 (3.1.6). Each result is {"text": …} or {"error": name of the exception};
those of others are the first 16 hexadecimal digits of the text's SHA-256, or the name.
"""
import gzip, hashlib, itertools, json, os, random, sys

import datetime as real
import jinja2.sandbox
from transformers.utils import chat_template_utils as hf

here = os.path.dirname(os.path.abspath(__file__))


class Now(real.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 21, 9, 5, 7)


hf.datetime = Now


class Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Lets lists grow and shrink, as llama.cpp does: templates in GGUF files ask for it."""
    def is_safe_attribute(self, of, name, value):
        return isinstance(of, list) and name in ("append", "pop") or super().is_safe_attribute(of, name, value)


hf.ImmutableSandboxedEnvironment = jinja2.sandbox.ImmutableSandboxedEnvironment = Sandbox


def render(source, variables):
    try:
        return {"text": hf._compile_jinja_template(source).render(**variables)}
    except Exception as e:
        return {"error": type(e).__name__}


def load(name):
    with open(os.path.join(here, name), encoding="utf-8") as f:
        return f.read()


def save(name, value):
    data = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
    with open(os.path.join(here, name), "wb") as f:
        f.write(gzip.compress(data, mtime=0))
    print(name, len(data))


# Values, operators, filters, tests and methods, each with each.
VALUES = ["1", "-7", "0", "2.5", "-0.0", "true", "false", "none", "''", "'abc'", "'aBc é'", "'12'", "[]", "[3, 1, 2]", "['b', 'A']",
          "(1, 'x')", "{}", "{'k': 1, 'j': [2]}", "range(3)", "nothing", "2 ** 70", "1e20", "'<a>'|safe", "[[1, 2], [0, 1]]", "'%s'", "'{}'"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
TESTS = ["boolean", "callable", "defined", "escaped", "even", "false", "float", "integer", "iterable", "lower", "mapping", "none", "number",
         "odd", "sequence", "string", "true", "undefined", "upper", "filter", "test", "divisibleby(3)", "eq(1)", "ne(1)", "lt(2)", "ge(1)",
         "in([1, 'abc', none])", "sameas(none)"]
FILTERS = ["abs", "capitalize", "center(9)", "count", "default('d')", "default('d', true)", "dictsort", "e", "escape", "filesizeformat",
           "first", "float", "float(7)", "forceescape", "indent(2, true)", "int", "int(7)", "int(7, 16)", "join('-')", "last", "length", "list",
           "lower", "items|list", "map('string')|list", "map(attribute='k')|list", "map(attribute=0)|list", "max", "min", "reject|list",
           "replace('a', 'b')", "reverse|list", "round", "round(1)", "round(-1)", "round(1, 'floor')", "round(0, 'ceil')", "safe", "select|list",
           "select('number')|list", "selectattr('k')|list", "slice(2)|list", "batch(2, 0)|list", "sort", "sort(reverse=true)", "string",
           "striptags", "sum", "sum(start=1)", "title", "tojson", "tojson(indent=1)", "trim", "trim('a')", "truncate(3, leeway=0)", "unique|list",
           "upper", "urlencode", "wordcount", "xmlattr", "format(1)", "attr('upper') is defined", "groupby(0)|list"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "strip('a')", "split()", "split('b')", "rsplit('b', 1)", "startswith('a')",
           "endswith(('c', 'é'))", "find('b')", "rfind('c', 0, 2)", "index('b')", "count('a')", "replace('b', 'x')", "format(1)", "join(['x', 'y'])",
           "zfill(6)", "center(8, '*')", "ljust(6)", "partition('b')", "splitlines()", "isdigit()", "isalpha()", "isupper()", "items()", "keys()",
           "values()", "get('k')", "get('no', 5)", "copy()", "append(1)", "pop()", "update({})", "index(1)", "count(1)", "nosuch()", "k", "j", "0",
           "real", "encode()", "removeprefix('a')", "swapcase()", "expandtabs()"]
KEYS = ["0", "-1", "5", "true", "'k'", "'upper'", "'items'", "1.0", "none", "nothing", "[]", "(0,)", "1:", ":-1", "::-1", "::2", "-2:5", "2:0:-1",
        "nothing:", "'a':", "true:"]
SPECS = ["", "d", "5", "<7", ">7", "^7", "*^9", "=+9", "05", "+", " ", ",", "_", "x", "#x", "#o", "b", "08b", "c", "e", ".2e", "f", ".1f", "10.3f",
         "g", ".3g", "%", ".0%", "s", ".2", "9.2", "+,.2f", "n", "G", "015,.2f", "=9", "é>5", "09,d", "012_x"]
PERCENTS = ["%s", "%r", "%a", "%d", "%i", "%5d", "%-5d|", "%05d", "%+d", "% d", "%x", "%#x", "%X", "%o", "%#o", "%e", "%.2e", "%f", "%.1f", "%8.3f",
            "%-9.2f|", "%09.2f", "%g", "%.3g", "%G", "%c", "%%", "%5s", "%-5s|", "%.2s", "%.3d", "%u", "%y", "%", "%(k)s", "%ld"]
NUMBERS = ["0", "1", "-1", "42", "255", "-1234567", "2 ** 70", "0.0", "1.0", "-1.5", "3.14159", "1e16", "1e-7", "123456.789", "1e100", "true",
           "'ab'", "'é'", "none", "[1]", "{'k': 1}", "nothing", "2.5", "0.5", "99999.5", "65"]


def matrix():
    """The values are in variables, since jinja2 has other rules for constants: it hides their errors."""
    yield from (f"{{% set a = {a} %}}{{% set b = {b} %}}{{{{ a {op} b }}}}" for a, op, b in itertools.product(VALUES, OPERATORS, VALUES)
                if op != "**" or b != "2 ** 70")
    yield from (f"{{% set a = {a} %}}{{{{ a is {t} }}}}" for a, t in itertools.product(VALUES, TESTS))
    yield from (f"{{% set a = {a} %}}{{{{ a|{f} }}}}" for a, f in itertools.product(VALUES, FILTERS))
    yield from (f"{{% set a = {a} %}}{{{{ a.{m} }}}}" for a, m in itertools.product(VALUES, METHODS))
    yield from (f"{{% set a = {a} %}}{{{{ a[{k}] }}}}" for a, k in itertools.product(VALUES, KEYS))
    yield from (f"{{% set n = {n} %}}{{{{ '{{:{s}}}'.format(n) }}}}" for s, n in itertools.product(SPECS, NUMBERS))
    yield from (f"{{% set n = {n} %}}{{{{ '{p}' % n }}}}" for p, n in itertools.product(PERCENTS, NUMBERS))
    yield from (f"{{% set a = {a} %}}{{{{ {u} (a) }}}}" for u, a in itertools.product(["-", "+", "not", "[1] +", "{'k': 1}.get", "range"], VALUES))


class Programs:
    """Random templates of statements, to find out which variable a name means where."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.loops = self.macros = 0

    def name(self):
        return self.r.choice("abcdxyz")

    def value(self):
        r = self.r
        return r.choice([self.name(), str(r.randrange(9)), self.name() + " ~ '" + r.choice("pqr") + "'", "(" + self.name() + " is defined)", "(loop.index if loop is defined)",
                         "ns.v", "(m(" + self.name() + ") if m is defined)" if self.macros == 0 else "0", "(caller() if caller is defined)", "[" + self.name() + ", 1]", self.name() + " | default('-')", "(loop.last if loop is defined)"])

    def body(self, depth):
        return "".join(self.statement(depth - 1) for _ in range(self.r.randrange(1, 4)))

    def statement(self, depth):
        r = self.r
        kind = r.choice(["print", "print", "print", "set", "set", "ns"] + (["for", "for", "if", "if", "macro", "with"] + ["call"] * (self.macros == 0) + [ "block", "filter", "gen", "flow"] if depth > 0 else []))
        n = self.name()
        match kind:
            case "print":
                return "{{ " + self.value() + " }},"
            case "set":
                return "{% set " + n + " = " + self.value() + " %}"
            case "ns":
                return "{% set ns.v = " + self.value() + " %}"
            case "for":
                self.loops += 1
                over = r.choice(["range(3)", "[5, 6]", "[]", "'st'", "range(2)"])
                text = "{% for " + n + " in " + over + (" if " + self.value() if r.random() < .3 else "") + " %}" + self.body(depth)
                self.loops -= 1
                return text + ("{% else %}" + self.body(depth) if r.random() < .3 else "") + "{% endfor %}"
            case "if":
                return "{% if " + self.value() + " %}" + self.body(depth) + ("{% else %}" + self.body(depth) if r.random() < .5 else "") + "{% endif %}"
            case "macro":
                loops, self.loops = self.loops, 0
                self.macros += 1
                text = "{% macro " + r.choice("mk") + "(" + n + r.choice(["", "=" + self.value()]) + ") %}" + self.body(depth) + "{{ caller() if caller }}{% endmacro %}"
                self.macros -= 1
                self.loops = loops
                return text
            case "call":
                loops, self.loops = self.loops, 0
                text = "{% call " + r.choice(["k(1)", "k(2)", "k(3)"]) + " %}" + self.body(depth) + "{% endcall %}"
                self.loops = loops
                return text
            case "with":
                return "{% with " + n + " = " + self.value() + " %}" + self.body(depth) + "{% endwith %}"
            case "block":
                return "{% set " + n + " %}" + self.body(depth) + "{% endset %}"
            case "filter":
                return "{% filter upper %}" + self.body(depth) + "{% endfilter %}"
            case "gen":
                loops, self.loops = self.loops, 0
                text = "{% generation %}" + self.body(depth) + "{% endgeneration %}"
                self.loops = loops
                return text
        return "{% if " + self.value() + " %}{% " + r.choice(["break", "continue"]) + " %}{% endif %}" if self.loops else ""

    def program(self):
        return "{% set ns = namespace(v=0) %}{% macro m(a) %}<{{ a }}{{ b }}{{ caller() if caller }}>{% endmacro %}{% macro k(c=3) %}[{{ caller() if caller }}{{ c }}{{ x }}]{% endmacro %}" + "".join(self.statement(3) for _ in range(4))


def addressed(result):
    """Python prints an address of some values: grove refuses them."""
    return " at 0x" in result.get("text", "")


def conversation(c, template):
    variables = {"tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    return render(template, {**variables, **json.loads(json.dumps(c))})


def main():
    if len(sys.argv) > 1:
        conversations = json.loads(load("conversations.json"))
        out = {}
        for name in sorted(os.listdir(sys.argv[1])):
            if name.endswith(".jinja"):
                with open(os.path.join(sys.argv[1], name), encoding="utf-8", newline="") as f:
                    source = f.read()
                results = [conversation(c, source) for c in conversations.values()]
                out[name] = [hashlib.sha256(r["text"].encode()).hexdigest()[:16] if "text" in r else r["error"] for r in results]
        save("others.json.gz", out)
        return
    variables = json.loads(load("vars.json"))
    save("snippets.json.gz", [[s, render(s, variables)] for s in load("snippets.txt").removesuffix("\n").split("\n----\n")])
    programs = (Programs(seed).program() for seed in range(600))
    results = ([s, render(s, {})] for s in programs)
    save("programs.json.gz", [[s, r] for s, r in results if len(r.get("text", "")) < 2000])
    conversations = json.loads(load("conversations.json"))
    folder = os.path.join(here, "templates")
    out = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8", newline="") as f:
            source = f.read()
        out[name] = {k: conversation(c, source) for k, c in conversations.items()}
    save("templates.json.gz", out)
    results = ([s, render(s, variables)] for s in matrix())
    save("matrix.json.gz", [[s, r] for s, r in results if not addressed(r)])


main()
