"""What programs of several sizes have in common."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tilewright.scheduler.torch.regions.sizes import open_text, why_no_open_text

TEXT = """axes a0={m}, a1=8
x0: float32[{m}, 8]
y: float32[{m}, 8]{more}
t0[a0, a1] = x0[a0, a1] * {factor}"""


def texts(more: str = "", **differing: list[str]) -> list[str]:
    found = []
    for place, size in enumerate(("8", "40", "56")):
        words = {"m": size, "factor": "2"} | {n: each[place] for n, each in differing.items()}
        found.append(TEXT.format(more=more, **words))
    return found


def test_an_axis_is_open_where_its_extent_differs() -> None:
    """The other extent of 8 is no part of it."""
    assert open_text(texts()) == (
        "axes a0=*, a1=8; x0: float32[a0, 8]; y: float32[a0, 8]; t0[a0, a1] = x0[a0, a1] * 2"
    )


def test_programs_without_the_size_are_as_they_are() -> None:
    same = texts()[:1] * 3
    assert open_text(same) == same[0]


@pytest.mark.parametrize("factor", [["8", "40", "56"], ["2", "2", "3"]])
def test_a_program_that_computes_with_the_size_has_no_open_axis(factor) -> None:
    assert open_text(texts(factor=factor)) is None


def test_a_layout_that_depends_on_the_size_has_no_open_axis() -> None:
    made = texts(more="(leading={m})")
    sizes = ("8", "40", "56")
    assert open_text([t.replace("{m}", s) for t, s in zip(made, sizes, strict=True)]) is None


@pytest.mark.parametrize("factor", [["8", "40", "56"], ["2", "2", "2"]])
def test_the_reason_says_how_many_axes_have_dynamic_sizes(factor) -> None:
    """Torch's users can mark one of two dimensions as static."""
    made = texts(factor=factor)
    assert why_no_open_text(made) == "its program depends on a dynamic size"
    two = [text.replace("a1=8", f"a1={size}") for text, size in zip(made, "357", strict=True)]
    assert why_no_open_text(two).startswith("2 axes of its program have a dynamic size")
