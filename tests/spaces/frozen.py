"""Digests of what every template makes: texts, calls, quantities and machine code.

Renew them with ``python -m tests.spaces.frozen``, and those of machine code, which takes minutes,
with ``--machine-code``. A change of what a text computes raises its template's version; a change of
a text alone has to keep the machine code.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests.spaces.test_templates import WORKLOADS
from tilewright.measure.cuda.compilation import compile_cubin, compiler_version
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.kernel import Kernel, Launch
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import templates_for
from tilewright.spaces.space import NO_PREFERENCE, Population, Space
from tilewright.spaces.target import Target
from tilewright.spaces.testing.targets import made_up_cpu

GOLDEN = Path(__file__).parent / "golden"
TEXTS, MACHINE_CODE = GOLDEN / "kernels.json", GOLDEN / "machine_code.json"
_AVX512 = ("-O2", "-march=x86-64-v4", "-mprefer-vector-width=512", "-mavx512bf16")
_AVX2 = ("-O2", "-march=x86-64-v3")
TARGETS: Mapping[str, Target] = {
    "avx512": made_up_cpu(bf16_dot=True, threads=4, flags=_AVX512),
    "avx2": made_up_cpu(isa="avx2", vector_bytes=32, vector_registers=16, flags=_AVX2),
    "sm_80": cuda_target("sm_80"),
    "sm_90a": cuda_target("sm_90a"),
}
PRODUCTS = [
    "matmul m=300 n=200 k=150",
    "matmul m=257 n=129 k=77 a=col b=col c=col 'epilogue=relu(x + bias[n]) + r[m,n] * s[]'",
    "matmul m=512 n=384 k=256 dtype=bfloat16 'epilogue=gelu(x + bias[m])'",
    "matmul m=4 n=1024 k=512 dtype=bfloat16 b=col",
    "matmul m=4 n=1024 k=512",
    "matmul m=512 n=384 k=512 dtype=float8_e4m3fn b=col",
    "grouped_matmul t=512 n=256 k=256 experts=4 dtype=bfloat16 b=col",
    "matmul m=64 n=16384 k=16384 dtype=bfloat16 b=col",
]
OTHERS = [
    "attention b=2 h=4 i=512 j=512 d=64 mask=causal dtype=float8_e4m3fn",
    "attention b=1 h=8 kv=2 i=1 j=1000 d=128 dtype=bfloat16",
    "layernorm r=40 c=1000",
    "rmsnorm r=64 c=4096 dtype=bfloat16",
    "logsumexp r=3 c=70000",
    "conv2d n=1 c=64 o=64 groups=64 h=14 w=14 r=3 s=3 padding=1",
    "'y[j, i] = x[i, j]' i=4096 j=4096",
    "'w[i] = sum[j](exp(sum[k](x[i,k] * u[j,k]))) / max[j](v[i,j])' i=30 j=40 k=20",
]
SCHEDULES = 10
"""Schedules of each template at least, shared by the workloads that it serves."""
EACH = 3
"""Schedules of each workload at least."""
POPULATION = 50
"""Schedules whose quantities are computed at once."""
DIGITS = 6
"""Digits of quantities that count: the last ones differ from machine to machine."""
ENTRY = re.compile(r"\btw_[0-9a-f]{16}")
LIMIT_S = 300.0

Digests = dict[str, dict[str, dict[str, str]]]


def spaces(target: Target) -> Iterator[tuple[str, list[Space]]]:
    """Yield every template's name with its spaces, one for each workload that it serves."""
    works = [*WORKLOADS, *(workload(text) for text in (*PRODUCTS, *OTHERS))]
    for template in templates_for(target):
        served = [work for work in works if template.why_not(work, target) is None]
        yield template.name, [Space(work, target, [template(work, target)]) for work in served]


def kernels(space: Space, count: int) -> Iterator[Kernel]:
    """Lower random schedules. The name of the entry is left out: it hashes names of decisions."""
    for row in _drawn(space, 0, count):
        yield space.lower(space.schedule(row))


def _drawn(space: Space, seed: int, count: int) -> Population:
    """Draw valid schedules with few attempts each, as when the digests were first taken; with many
    where these find none."""
    wishes = np.full((count, space.width), NO_PREFERENCE, dtype=np.int32)
    rows = space.complete(wishes, np.random.default_rng(seed))
    return rows if len(rows) else space.sample(np.random.default_rng(seed), count)


def digests(target: Target) -> Digests:
    """Digest texts with their calls, and quantities, by template and workload."""
    return {
        name: {
            str(space.workload): {
                "text": _digest(
                    map(text, kernels(space, max(EACH, ceil_div(SCHEDULES, len(own)))))
                ),
                "quantities": _digest(_quantities(space)),
            }
            for space in own
        }
        for name, own in spaces(target)
    }


def text(kernel: Kernel) -> str:
    """Write a kernel's own text, and what its call needs."""
    call = kernel.call
    launches = "".join(map(_launch, call.launches))
    memory = f"{call.workspace_bytes}, {call.workspace_zeroed}"
    return ENTRY.sub("tw_kernel", f"{kernel.source.body}\n({launches}, {memory})\n")


def machine_code(target: Target) -> dict[str, dict[str, str]]:
    """Digest machine code, by template and workload: objects, or cubins."""
    digest = _object if isinstance(target, CpuTarget) else _cubin
    return {
        name: {
            str(space.workload): _digest(
                digest(target, ENTRY.sub("tw_kernel", kernel.source.text))
                for kernel in kernels(space, ceil_div(SCHEDULES, len(own)))
            )
            for space in own
        }
        for name, own in spaces(target)
    }


def compiler(target: Target) -> str:
    """Name the compiler whose machine code is digested."""
    if isinstance(target, CpuTarget):
        found = find_compiler()
        return f"{found.name} {found.version}"
    return f"nvrtc {compiler_version()}"


def _launch(launch: Launch) -> str:
    maps = str(launch.tensor_maps).replace(", open=None", "")
    return (
        f"Launch(grid={launch.grid}, block={launch.block}, cluster={launch.cluster}, "
        f"shared_bytes={launch.shared_bytes}, tensor_maps={maps}, "
        f"early={launch.early})"
    )


def _quantities(space: Space) -> Iterator[str]:
    population = _drawn(space, 1, POPULATION)
    for name, values in sorted(space.quantities(population).items()):
        yield f"{name} {[f'{value:.{DIGITS}g}' for value in values]}\n"


def _object(target: Target, text: str) -> str:
    """Digest the compiler's object without symbols, which number what a text does not use, too."""
    assert isinstance(target, CpuTarget)
    with TemporaryDirectory() as folder:
        made = Path(folder) / "kernel.o"
        command = [find_compiler().path, *target.compiler_flags, "-w", "-fPIC", "-fno-ident"]
        command += ["-c", "-x", "c", "-", "-o", str(made)]
        subprocess.run(command, input=text, text=True, check=True, timeout=LIMIT_S)
        subprocess.run(["strip", "--strip-unneeded", str(made)], check=True, timeout=LIMIT_S)
        return hashlib.sha256(made.read_bytes()).hexdigest()


def _cubin(target: Target, text: str) -> str:
    done = compile_cubin(device_text(text) + text, target.name, LIMIT_S, lambda: False)
    assert done.cubin is not None, done.log
    return hashlib.sha256(done.cubin).hexdigest()


def _digest(parts: Iterable[str]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode())
    return found.hexdigest()[:16]


def main(words: Sequence[str]) -> None:
    """Renew one of the two files."""
    if list(words) == ["--machine-code"]:
        found = {
            name: {"compiler": compiler(target), "digests": machine_code(target)}
            for name, target in TARGETS.items()
        }
        MACHINE_CODE.write_text(json.dumps(found, indent=1) + "\n")
    elif not words:
        texts = {name: digests(target) for name, target in TARGETS.items()}
        TEXTS.write_text(json.dumps(texts, indent=1) + "\n")
    else:
        sys.exit(f"{' '.join(words)!r} is not --machine-code, which is all there is")


if __name__ == "__main__":
    main(sys.argv[1:])
