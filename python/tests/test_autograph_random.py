"""AutoGraph: random programs, compared with eager Python."""

from __future__ import annotations

import linecache
import random

import pytest

import taut as tf

NAMES = ("a", "b", "c", "d")


class Writer:
    """Writes a function of three numbers: assignments, branches, loops, ways out, nested at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.counters = 0

    def number(self) -> str:
        kind = self.random.randrange(5)
        if kind < 2:
            return self.random.choice(NAMES)
        if kind < 3:
            return str(self.random.randrange(1, 9))
        operator = self.random.choice(["+", "-", "*"])
        return f"({self.random.choice(NAMES)} {operator} {self.number()})"

    def condition(self) -> str:
        kind = self.random.randrange(6)
        compared = f"{self.number()} {self.random.choice(['<', '>', '<=', '==', '!='])} {self.number()}"
        if kind < 3:
            return compared
        if kind == 3:
            return f"not ({compared})"
        if kind == 4:
            return f"{self.number()} < {self.number()} < {self.number()}"
        return f"({self.condition()}) {self.random.choice(['and', 'or'])} ({compared})"

    def assignment(self) -> str:
        name = self.random.choice(NAMES)
        if self.random.randrange(4) == 0:
            return f"{name} = {self.number()} % 31 if {self.condition()} else {self.number()} % 17"
        return f"{name} = ({self.number()} + {self.number()}) % 31"

    def block(self, depth: int, in_loop: bool) -> list[str]:
        lines = []
        for _ in range(self.random.randrange(1, 4)):
            lines += self.statement(depth, in_loop)
        return lines

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        kind = self.random.randrange(10) if depth else 0
        if kind < 3:
            return [self.assignment()]
        if kind < 6:
            lines = [f"if {self.condition()}:", *indented(self.block(depth - 1, in_loop))]
            if self.random.randrange(2):
                lines += [f"elif {self.condition()}:", *indented(self.block(depth - 1, in_loop))]
            if self.random.randrange(2):
                lines += ["else:", *indented(self.block(depth - 1, in_loop))]
            return lines
        if kind == 6 and in_loop:
            way_out = self.random.choice(["break", "continue", "return a, b, c, d"])
            return [f"if {self.condition()}:", f"    {way_out}"]
        if kind == 7:
            limit = self.random.choice([f"{self.number()} % 4", "3"])
            self.counters += 1
            return [f"for i{self.counters} in range({limit}):", *indented(self.block(depth - 1, True))]
        self.counters += 1
        counter = f"k{self.counters}"
        body = [f"{counter} = {counter} + 1", *self.block(depth - 1, True)]
        test = f"{counter} < {self.number()} % 5"
        return [f"{counter} = 0", f"while {test} and ({self.condition()}):", *indented(body)]

    def program(self) -> str:
        lines = ["d = 0", *self.block(3, False), *self.block(2, False), "return a, b, c, d"]
        return "\n".join(["def f(a, b, c):", *indented(lines)]) + "\n"


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed):
    text = Writer(seed).program()
    name = f"<program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {}
    exec(compile(text, name, "exec"), scope)  # noqa: S102
    traced = tf.function(scope["f"])
    for given in ((0, 1, 2), (5, 3, 11), (30, 7, 0), (13, 29, 17)):
        found = traced(*(tf.constant(number) for number in given))
        assert [int(part) for part in found] == list(scope["f"](*given)), text
    assert traced.trace_count == 1
