"""What random requests are made of."""

import dataclasses
import typing

WORDS = "sun moon tree river { } [ ] \" \\ \n \t func return 7 3.5 é 漢字 🌲 <think> </think> <tool_call> the a is of red-green, Hello! a: b;".split(" ")


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

    said: typing.Any = None  # of the answer, once it came, by its law
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


def parts(r, kind="text"):
    return [{"type": kind, "text": text(r)} for _ in range(r.randint(1, 2))]


def length(r, held):
    """How many tokens: few, and enough for what is held to a form now and then."""
    return r.choice([1, 5, 60, 60]) if held else r.choice([1, 1, 2, 3, 8])


def seeded(r, ask):
    """Has an answer be the same each time, where the request does not say how. In some protocols seed is an extension of grove."""
    if ask.body is not None and not ask.wrong:
        body = ask.body.setdefault("options", {}) if ask.path in ("/api/chat", "/api/generate") else ask.body
        body.setdefault("seed", r.randrange(1 << 31))
    return ask
