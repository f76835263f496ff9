"""What ``tilewright show`` and ``tilewright operators`` say, and ``tilewright targets``."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest

from tests.scheduler.cli.command import ask, one_line
from tilewright.scheduler.cli.app import run
from tilewright.spaces.language import program
from tilewright.spaces.named import names
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target, target_from_json, target_names

TEXT = "y[r, c] = softmax[c](x[r, c])"
SIZES = ("r=64", "c=32")


def test_every_operator_is_listed_with_an_example_that_runs(capsys):
    head, *lines = ask(capsys, "operators").splitlines()
    assert head.split() == ["operator", "what", "it", "gives", "example"]
    assert [line.split()[0] for line in lines] == names()
    for line in lines:
        command = shlex.split(line[line.index("tilewright ") :])
        shown = ask(capsys, *command[1:])
        written = shown.split("\n\n")[0]
        assert str(program(written)) == written
        assert re.search(r"^identity: [0-9a-f]{16}$", shown, re.MULTILINE)
        assert "templates on cpu" in shown
        assert "serves it" in shown or command[2] != "matmul"


def test_operators_and_targets_are_json_too(capsys):
    found = json.loads(ask(capsys, "operators", "--format", "json"))
    assert [operator["name"] for operator in found] == names()
    table = ask(capsys, "operators")
    for operator in found:
        assert set(operator) == {"name", "summary", "example"}
        assert operator["summary"] in table
        assert operator["example"] in table
    found = json.loads(ask(capsys, "targets", "--format", "json"))
    assert [target["name"] for target in found] == list(target_names())
    table = ask(capsys, "targets")
    for one in found:
        if one["target"] is None:
            assert one["reason"] in table
        else:
            assert one["reason"] is None
            assert target_from_json(one["target"]) == detect_target(one["name"])


def test_a_program_from_the_command_line_or_a_file_is_the_named_one(tmp_path, capsys):
    named = ask(capsys, "show", "softmax", *SIZES)
    assert ask(capsys, "show", TEXT, *SIZES) == named
    file = tmp_path / "my.tw"
    file.write_text(f"# of rows\n{TEXT}\n")
    assert ask(capsys, "show", "--file", str(file), *SIZES) == named
    assert "bfloat16[64, 32]" in ask(capsys, "show", TEXT, *SIZES, "dtype=bfloat16")


def test_every_target_is_listed_with_an_example_that_runs(capsys):
    head, *lines = ask(capsys, "targets").splitlines()
    assert head.split() == ["target", "what", "it", "is", "example"]
    assert [line.split()[0] for line in lines] == list(target_names())
    examples = [line[line.index("tilewright ") :] for line in lines if "tilewright " in line]
    assert len(examples) >= len(lines) - 1  # there may be no GPU here
    for example in examples:
        assert "templates on" in ask(capsys, *shlex.split(example)[1:])


def test_what_is_derived_is_shown(capsys):
    text = ask(capsys, "show", TEXT, *SIZES)
    assert "times exp(new - old) of -y_max[r]" in text
    text = ask(capsys, "show", "matmul", "m=64", "n=32", "k=16", "--target", "cuda:sm_80")
    assert "rows m; columns n; depth k" in text
    assert "work: 65536 FLOPs" in text
    assert "  mma: multiplies float32; allowed: " in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["softmaxx", "r=4"],
            "unknown operator 'softmaxx'; did you mean softmax? known: argmax, attention",
        ),
        (["softmax", "r=4"], "softmax needs r, c; missing: c"),
        (["softmax", "r"], "'r' is not a parameter; allowed: name=value"),
        (["y[i] = foo(i)", "i=4"], "unknown function 'foo'"),
        (
            [TEXT, "r=4", "c=zero"],
            "c='zero' is no whole number; allowed: whole numbers from 1 to 16777216",
        ),
        ([], "no operator is given; allowed: a name, a program's text, or --file"),
        (["--file", "missing.tw"], "missing.tw"),
        (["--file", "/dev/zero"], "/dev/zero is no program: over 65536 bytes"),
        (["--file", "/bin/true"], "/bin/true is no program: "),
        (["softmax", *SIZES, "--target", "tpu"], "tpu"),
    ],
)
def test_bad_input_is_one_line(words, message, capsys, here):
    assert run(["show", *words]) == 2
    assert message in one_line(capsys.readouterr().err)


CODED = "q: {0}[n, k](packed); a: bfloat16[m, k]; y[m, n] = sum[k](a[m, k] * (q[n, k] - 4))"
RING = (
    "low_bit_ring: tile_rows=16 warp_tiles=1 warp_columns={} warp_depth=1 stages=2 stage_depth=1 "
    "interleave=1 splits=1 scales=late multiply={}"
)
DECISIONS = {
    "fma": "low_bit: tile_rows=8 warp_tiles=1 warp_columns=1 warp_depth=1 in_flight=1 "
    "block_depth=1 splits=1 scales=late",
    "mma": RING.format(1, "mma"),
    "wgmma": RING.format(4, "wgmma"),
}


@pytest.mark.parametrize("code", ["uint4", "uint3"])
@pytest.mark.parametrize("multiply", DECISIONS)
def test_layouts_of_a_schedule_are_those_of_its_kernel(capsys, code, multiply):
    given = [CODED.format(code), "m=16", "n=8448", "k=512", "--target", "cuda:sm_90a"]
    schedule = DECISIONS[multiply]
    shown = ask(capsys, "show", *given, "--schedule", schedule).partition("layouts of ")[2]
    assert shown.startswith(schedule)
    w = workload(CODED.format(code), m=16, n=8448, k=512)
    kernel = space_for(w, detect_target("cuda:sm_90a")).lower(Schedule.from_text(schedule))
    assert f"shared memory: {kernel.call.launches[0].shared_bytes} bytes" in shown
    sums = re.search(r"float s((\[\d+\])+) = ", kernel.source.body)[1]
    said = re.search(r"sums in registers: s((\[\d+[^]]*\])+)", shown)[1]
    assert re.sub(r"(\d+)[^]]*", r"\1", said) == sums
    last = "w2 bits 15 and 31 on (1)" if code == "uint3" else "w3 bits 12 and 28 on (4)"
    assert last in shown
    assert ("ldmatrix" in shown) == (multiply == "mma")


def test_layouts_tell_of_experts_and_their_segments(capsys):
    text = "e: int32[t](sorted < 6); q: uint4[6, n, k](packed); a: bfloat16[t, k]; "
    text += "y[t, n] = sum[k](a[t, k] * (q[e[t], n, k] - 4))"
    schedule = DECISIONS["mma"].replace("splits", "blocks_per_sm=2 splits")
    given = [text, "t=40", "n=80", "k=512", "--target", "cuda:sm_90a", "--schedule", schedule]
    shown = ask(capsys, "show", *given)
    assert "q in memory: [6 matrices][8 of 64 of the depth][5 of 16 columns][512 bytes]" in shown
    assert "segments of e in shared memory: int[2][7]" in shown
    assert "40 blocks take tiles of 16 rows of a segment and 16 columns in turns" in shown
    kernel = space_for(workload(text, t=40, n=80, k=512), detect_target("cuda:sm_90a")).lower(
        Schedule.from_text(schedule)
    )
    assert kernel.call.launches[0].grid[0] == 40


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("low_bit tile_rows=8", "is no schedule; needs 'template: name=value ...'"),
        ("low_bit: tile_rows", "'tile_rows' is no decision; needs name=value"),
        ("low_bit: tile_rows=9", "schedule is not in the space"),
    ],
)
def test_a_schedule_that_is_none_is_one_line(capsys, text, complaint):
    given = ["show", CODED.format("uint4"), "m=16", "n=256", "k=512", "--target", "cuda:sm_90a"]
    assert run([*given, "--schedule", text]) == 2
    assert complaint in one_line(capsys.readouterr().err)


def test_a_template_may_not_tell_its_layouts(capsys):
    w = workload("matmul m=64 n=64 k=64")
    space = space_for(w, detect_target("cuda:sm_80"))
    schedule = next(iter(space.schedule(row) for row in space.sample(np.random.default_rng(0), 1)))
    sizes = ("matmul", "m=64", "n=64", "k=64", "--target", "cuda:sm_80")
    assert "does not tell" in ask(capsys, "show", *sizes, "--schedule", str(schedule))
    assert Schedule.from_text(str(schedule)) == schedule


PRODUCT = ("matmul", "m=64", "n=64", "k=64")


@pytest.mark.parametrize(
    ("target", "schedule", "kept"),
    [
        ("cpu", "contraction: tile_rows=6 pack_right=True", ("tile_rows=6", "pack_right=True")),
        ("cuda:sm_80", "simt: depth=8 splits=1", ("depth=8", "splits=1")),
    ],
)
def test_the_source_of_a_schedule_is_its_kernel(capsys, target, schedule, kept):
    shown = ask(capsys, "show", *PRODUCT, "--target", target, "--schedule", schedule, "--source")
    (written,) = re.findall(r"^// schedule: (.*)$", shown, re.MULTILINE)
    assert all(f" {decision} " in f"{written} " for decision in kept)
    space = space_for(workload(" ".join(PRODUCT)), detect_target(target))
    assert space.lower(Schedule.from_text(written)).source.body in shown


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--source"], "--source prints the kernel of a schedule; allowed with: --schedule"),
        (["--schedule", "contraction: tile_rows=28 tile_vectors=4"], "tile_vectors=4'"),
    ],
)
def test_there_is_no_source_of_what_is_no_schedule(capsys, words, complaint):
    assert run(["show", *PRODUCT, *words]) == 2
    assert complaint in one_line(capsys.readouterr().err)
