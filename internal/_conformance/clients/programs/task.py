"""The task of the frameworks' programs: tools that read and write files, and what must come of it."""

import os
import sys

BEFORE, AFTER, REQUEST, DONE = sys.argv[1:5]
QUESTION = "Which city is the capital of France?"
URL = os.environ["GROVE_URL"]


def read_file(path: str) -> str:
    """Read a file."""
    with open(path) as f:
        return f.read()


def write_file(path: str, text: str) -> str:
    """Write a file."""
    with open(path, "w") as f:
        f.write(text)
    return "written"


def reset():
    write_file("greeting.txt", BEFORE)


def check(name, said):
    """The model said what it says in the end, and the file is changed."""
    assert said == DONE, (name, said)
    assert read_file("greeting.txt") == AFTER, (name, read_file("greeting.txt"))
