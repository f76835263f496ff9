"""Small templates that span spaces without making kernels."""

from typing import ClassVar

import numpy as np

from tilewright.spaces.template import Decision, Rule, Template


class Blocks(Template):
    """Two block sizes, an order and a flag under rules of one, two and three decisions."""

    name: ClassVar[str] = "blocks"
    version: ClassVar[int] = 3
    decisions = (
        Decision("bm", (1, 2, 4, 8, 16)),
        Decision("bn", (4, 8, 16, 32)),
        Decision("order", ("mn", "nm")),
        Decision("pack", (False, True)),
        Decision("stages", (1, 2, 3)),
    )
    rules = (
        Rule(
            "registers",
            ("bm", "bn"),
            lambda c: c["bm"] * c["bn"] <= 128,
            lambda v: f"a tile of {v['bm']}x{v['bn']} needs {v['bm'] * v['bn']} registers of 128",
        ),
        Rule(
            "memory",
            ("bm", "bn", "stages"),
            lambda c: (c["bm"] + c["bn"]) * c["stages"] <= 60,
            lambda v: f"{v['stages']} stages do not fit",
        ),
        Rule(
            "packing",
            ("order", "pack"),
            lambda c: (c["order"] == "mn") | c["pack"],
            lambda v: f"order {v['order']} needs packing",
        ),
        Rule("even", ("bm",), lambda c: c["bm"] != 2, lambda v: "bm must not be 2"),
    )

    @classmethod
    def refuses(cls, workload, target):
        return None

    def quantities(self, columns):
        return {"flops": columns["bm"] * columns["bn"]}

    def lower(self, schedule):
        return schedule.key


class Lanes(Blocks):
    """One decision shared by name with the other template, and a rule that leaves dead ends."""

    name: ClassVar[str] = "lanes"
    version: ClassVar[int] = 1
    decisions = (
        Decision("bm", (1, 2, 3)),
        Decision("lanes", (4, 8)),
        Decision("split", (1, 2, 4)),
        Decision("fixed", ("only",)),
    )
    rules = (
        Rule(
            "three",
            ("bm", "lanes", "split"),
            lambda c: (c["bm"] != 3) | (c["lanes"] * c["split"] == 64),  # never: a dead end
            lambda v: "bm=3 does not divide",
        ),
        Rule(
            "work",
            ("split", "lanes"),
            lambda c: c["split"] * c["lanes"] <= 16,
            lambda v: f"split {v['split']} leaves lanes idle",
        ),
    )

    def quantities(self, columns):
        return {"instructions": columns["split"] + np.zeros(len(columns["bm"]))}


class Impossible(Blocks):
    """A template without a valid schedule."""

    name: ClassVar[str] = "impossible"
    decisions = (Decision("x", (1, 2)),)
    rules = (Rule("never", ("x",), lambda c: c["x"] > 2, lambda v: "x is too small"),)
