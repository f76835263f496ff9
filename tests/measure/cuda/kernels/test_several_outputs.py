"""Products that write their sums and what is computed of them: all templates on the emulator."""

from __future__ import annotations

import pytest

from tests.measure.cuda.emulator.planting import deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import MMA, SIMT, instructions
from tests.measure.cuda.kernels.hopper.hopper_problems import USUAL, small_target
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.measure.cuda.kernels.test_thin_kernels import FMA
from tests.measure.cuda.kernels.test_thin_kernels import MMA as THIN_MMA
from tests.spaces.several_outputs import LINEAR, PROGRAMS, made
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.mma.template import Mma
from tilewright.spaces.cuda.simt.template import Simt
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.cuda.thin.template import CudaThin
from tilewright.spaces.cuda.windows.template import CudaWindows
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.template import Template
from tilewright.spaces.testing.template import checked_quantities
from tilewright.spaces.workloads.workload import Workload

TEMPLATES: dict[str, tuple[type[Template], dict[str, int | str | bool]]] = {
    "simt": (Simt, SIMT),
    "mma": (Mma, MMA | {"depth": 32}),
    "hopper": (Hopper, USUAL),
    "thin": (CudaThin, FMA),
}
DEEP = {"lane_columns": 1, "thread_columns": 4, "thread_depth": 4}
ACROSS = {"lane_columns": 16, "thread_columns": 4, "thread_depth": 4}
HALVES = LINEAR.replace("float32", "bfloat16")
OUTPUTS = "t: {0}[i, j]; y: {1}[i, j]; -> t, y"
BOTH = OUTPUTS.format("bfloat16", "bfloat16")
IMAGE = (
    "axes n=2, o=24, p=6, q=7, c=32, r=3, s=3; x: bfloat16[n, 8, 9, c]; w: bfloat16[o, r, s, c]; "
    "h: bfloat16[o]; t: bfloat16[n, p, q, o]; y: bfloat16[n, p, q, o]; "
    "z[n, p, q, o] = sum[r, s, c](x[n, p + r, q + s, c] * w[o, r, s, c]); "
    "t[n, p, q, o] = z[n, p, q, o] + h[o]; y[n, p, q, o] = gelu(t[n, p, q, o]); -> t, y"
)


@deferred
def case(name: str, work: Workload, changes: dict, target: str = "", sms: int = 2) -> tuple:
    """The workload, and the kernel of the template's usual schedule with some changes."""
    template, usual = TEMPLATES[name]
    hopper = name == "hopper" and not target
    hardware = small_target(sms) if hopper else cuda_target(target or "sm_89")
    assert template.refuses(work, hardware) is None
    served = template(work, hardware)
    known = {decision.name: decision.values[0] for decision in served.decisions}
    chosen = tuple({**known, **usual, **changes}.items())
    return work, Space(work, hardware, [served]).lower(Schedule(name, chosen))


def cases() -> dict[str, tuple]:
    """Kernels of each template, those of small tiles of all kinds of programs."""
    found: dict[str, tuple] = {}
    for text, program in PROGRAMS.items():
        found[f"simt, {text}"] = case("simt", made(program), {})
        few = {"j": 5} if text == "columns first" else {"i": 5}
        lanes = ACROSS if "batch" in text else DEEP
        if "dtypes" in text:
            lanes = DEEP | {"lane_columns": 2, "thread_depth": 8}
        found[f"thin, {text}"] = case("thin", made(program, **few, k=200), lanes)
    halves = {"two kinds": OUTPUTS.format("bfloat16", "float32"), "one kind": BOTH}
    for text, outputs in halves.items():
        plain = HALVES.replace("c: bfloat16[j]; ", "").replace(" + c[j]", "")
        work = made(f"{plain}; {outputs}", i=41, j=40, k=67)
        found[f"mma, {text}"] = case("mma", work, {})
        slabs = {"tile_columns": 32, "warp_rows": 2, "store_path": "shared"}
        found[f"mma, {text} through slabs"] = case("mma", work, slabs)
        found[f"mma, {text}, split"] = case("mma", work, {"splits": 3, "merge": "add"})
        work = made(f"{plain}; {outputs}", i=200, j=264, k=136)
        found[f"hopper, {text}, directly"] = case("hopper", work, {"store_buffers": 0})
        swapped = {"swap_ab": True, "block_n": 32, "store_buffers": 0}
        found[f"hopper, {text}, swapped"] = case("hopper", work, swapped)
    biased = made(f"{HALVES}; {BOTH}", i=200, j=264, k=136)
    staged = {"block_n": 80, "schedule": "pingpong"}
    for buffers in (1, 2, 4):
        found[f"hopper, {buffers} buffers"] = case("hopper", biased, {"store_buffers": buffers})
        changes = staged | {"store_buffers": buffers}
        found[f"hopper, {buffers} buffers in turns"] = case("hopper", biased, changes)
    swapped = {"swap_ab": True, "block_n": 32, "store_buffers": 2}
    found["hopper, staged and swapped"] = case("hopper", biased, swapped)
    one_tile = made(f"{HALVES}; {BOTH}", i=128, j=64, k=264)
    for way in ("add", "cluster"):
        split = {"splits": 2, "merge": way, "block_n": 64, "store_buffers": 2}
        found[f"hopper, split by {way}"] = case("hopper", one_tile, split, sms=8)
    lots = (
        "a: bfloat16[l, i, k]; b: bfloat16[l, j, k]; t: bfloat16[l, i, j]; y: bfloat16[l, i, j]; "
        "t[l, i, j] = sum[k](a[l, i, k] * b[l, j, k]); y[l, i, j] = exp(t[l, i, j] / 9); -> t, y"
    )
    batch = made(lots, i=72, j=136, k=64)
    found["hopper, a batch"] = case("hopper", batch, {"block_n": 64})
    found["thin, a batch"] = case("thin", made(lots, i=5, j=136, k=512), {"thread_columns": 4})
    few = made(f"{HALVES}; {BOTH}", i=5, j=136, k=512)
    found["thin, matrices"] = case("thin", few, {**THIN_MMA, "splits": 2})
    image = workload(IMAGE)
    found["simt, images"] = case("simt", image, {})
    found["mma, images"] = case("mma", image, {})
    found["hopper, images"] = case(
        "hopper", image, {"store_buffers": 0, "block_n": 32, "depth": 32}
    )
    return found


BROKEN = {
    "simt": case("simt", made(PROGRAMS["a slice"]), {}),
    "mma": case("mma", made(f"{HALVES}; {BOTH}", i=41, j=40, k=67), {}),
    "hopper": case(
        "hopper", made(f"{HALVES}; {BOTH}", i=72, j=136, k=64), {"block_n": 64, "store_buffers": 2}
    ),
    "thin": case("thin", made(PROGRAMS["a slice"], i=5, k=200), DEEP),
}
UNFINISHED = (
    r"(finished1\[\d\] = \{.*?tw_gelu\(.*?) \+ (?:tw::to_float\(v_c\[\S+\]\)|v_c\[\S+\])",
    r"\1",
)
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    **{
        f"the second output is stored before its operand is added, {name}": (name, *UNFINISHED)
        for name in ("simt", "mma", "thin")
    },
    **{
        f"the second output is the first one, {name}": (
            name,
            r"(store_global<\d>\(e_y .*, )finished1",
            r"\1finished",
        )
        for name in ("simt", "mma", "thin")
    },
    "the second output goes over the first": ("mma", r"(store_global<\d>\()e_y ", r"\1output "),
    "the second output has the rows of the first": ("simt", r"(e_y .*? )200 \*", r"\1 148 *"),
    "the second output is a row late": ("thin", r"e_y \+ ", "e_y + 50 + "),
    "both leave through one map": ("hopper", "&output_map1, ", "&output_map, "),
    "both leave through one buffer": (
        "hopper",
        r"(?s)(turn = turn == 1 \? 0 : turn \+ 1;.*?)turn \* 8192",
        r"\1(turn ^ 1) * 8192",
    ),
    "the second output does not wait for its buffer": (
        "hopper",
        r"(?s)(tma_wait_read<1>.*?)tw::tma_wait_read<1>\(\)",
        r"\1(void)0",
    ),
}


class TestSeveralOutputs(KernelContract):
    cases, broken, bugs = cases(), BROKEN, BUGS


def test_windows_write_all_outputs_and_count_them():
    sums = "y[i, j] = sum[k](x[i + k] * w[j, k])"
    kinds = "x: float16[{}]; w: float16[j, k]; y: float16[i, j]; {}".format
    extents = {"i": 990, "j": 8, "k": 10}
    both = kinds(999, f"z: float16[i, j]; {sums}; z[i, j] = tanh(y[i, j]); -> y, z")
    target, found = cuda_target("sm_90a"), []
    for text in (both, kinds(999, sums)):
        work = workload(text, **extents)
        assert CudaWindows.refuses(work, target) is None
        found.append(Space(work, target, [CudaWindows(work, target)]))
    verdicts = list(emulate(found[0], draw(found[0], 4, 0)))
    assert all(verdict.right for verdict in verdicts), [each.error_text for each in verdicts]
    counted = [checked_quantities(space, seed=0, schedules=30) for space in found]
    elements = [each["epilogue_elements"].min() for each in counted]
    assert elements[0] == 2 * elements[1]


@pytest.mark.parametrize("name", TEMPLATES)
def test_machine_code_stores_both_outputs_without_spills(name):
    work = made(f"{HALVES}; {BOTH}", i=16 if name == "thin" else 256, j=256, k=256)
    changes = THIN_MMA if name == "thin" else {}
    found = instructions("sm_90a", case(name, work, changes, "sm_90a"))
    assert found["LDL"] == found["STL"] == 0


@pytest.mark.parametrize("name", TEMPLATES)
def test_quantities_count_what_is_written_twice(name):
    target = cuda_target("sm_90a")
    rows = 16 if name == "thin" else 256
    work = made(f"{HALVES}; {BOTH}", i=rows, j=256, k=256)
    text = HALVES.partition(" t[")[0] + " y[i, j] = gelu(s[i, j] + c[j]); y: bfloat16[i, j]"
    one = made(text, i=rows, j=256, k=256)
    template = TEMPLATES[name][0]
    counted = [
        checked_quantities(Space(each, target, [template(each, target)]), seed=0, schedules=30)
        for each in (work, one)
    ]
    assert counted[0]["epilogue_elements"].min() >= 2 * rows * 256
    assert counted[0]["main_bytes"].min() - counted[1]["main_bytes"].min() == 2 * rows * 256
