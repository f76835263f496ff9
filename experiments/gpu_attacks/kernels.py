"""The kernels: a right one, and the same with one harm each, and what a record should say of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.measure.cuda.session import CHECKED
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job
from tilewright.spaces.cuda.abi import parameters
from tilewright.spaces.kernel import Call, Kernel, Launch, Source, arguments
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target

WORK = CHECKED
ROWS, WARP = 67, 32
LAUNCH = Launch((ROWS, 1, 1), (WARP, 1, 1))
MORE_SHARED = 300 << 10  # bytes, than any GPU gives a block
MORE_MEMORY = 1 << 42  # bytes, than any GPU has
TOO_MANY_THREADS = 1024 + 32  # more than a block may have; no compiler looks at that

BODY = """
  const int m = blockIdx.x;
  for (int n = threadIdx.x; n < 45; n += 32) {
    float sum = 0;
    for (int k = 0; k < 33; k++)
      sum += tw::load_global(A + m * 33 + k) * tw::load_global(B + n * 33 + k);
    tw::store_global(C + m * 45 + n, sum);
  }
"""
LATE = """
  const u32 turn = threadIdx.x == 0 ? tw::take_ticket(calls + blockIdx.x) : 0;
  if (tw::warp_uniform(turn) >= 2) return;
"""


@dataclass(frozen=True)
class Attack:
    """A kernel that should get a record of ``kind``; None where it is right.

    ``on_emulator`` tells whether an emulator can stand for the GPU.
    """

    name: str
    kind: ErrorKind | None
    body: str = BODY
    outside: str = ""
    launch: Launch = LAUNCH
    workspace_bytes: int = 0
    on_emulator: bool = True

    def candidate(self, target: Target) -> Candidate:
        """Return the candidate that a runner is asked to measure."""
        given = arguments(WORK.inputs, WORK.outputs)
        signature = parameters(given, self.workspace_bytes > 0)
        head = f'{self.outside}\nextern "C" __global__ void {self.name}({signature})'
        text = f"{head} {{{self.body}}}"
        call = Call(self.name, given, self.workspace_bytes, launches=(self.launch,))
        kernel = Kernel(Source("cuda", "", text), call)
        job = Job("attacks", WORK, target)
        return Candidate(job, Schedule("written", (("name", self.name),)), kernel)


GOOD = tuple(Attack(name, None) for name in ("first", "second", "third"))
WRONG = Attack("wrong", ErrorKind.WRONG, BODY.replace("n, sum)", "n, sum + (m == 3))"))
HARMFUL = (
    WRONG,
    Attack("unwritten", ErrorKind.WRONG, BODY.replace("n < 45", "n < 44")),
    Attack(
        "late", ErrorKind.WRONG, LATE + BODY, f"__device__ u32 calls[{ROWS}];", on_emulator=False
    ),
    Attack(
        "beside",
        ErrorKind.OUT_OF_BOUNDS,
        BODY + f"  if (m == {ROWS - 1} && threadIdx.x == 0) C[{ROWS * 45}] = 1;\n",
        on_emulator=False,
    ),
    Attack(
        "before",
        ErrorKind.OUT_OF_BOUNDS,
        BODY + "  if (m == 0 && threadIdx.x == 0) ((u8 *)C)[-1] = 1;\n",
        on_emulator=False,
    ),
    Attack(
        "input",
        ErrorKind.OUT_OF_BOUNDS,
        BODY + "  if (m == 0 && threadIdx.x == 0) ((float *)B)[40] += 1;\n",
        on_emulator=False,
    ),
    Attack("far", ErrorKind.CRASH, BODY.replace("C + m", "C + (i64)100000000000 * (1 + m)")),
    Attack(
        "misaligned",
        ErrorKind.CRASH,
        "  float v[4];\n  tw::load_global<4>(v, A + 1);\n"
        + BODY.replace("sum = 0", "sum = 0 * (v[0] + v[1] + v[2] + v[3])"),
    ),
    Attack(
        "hangs",
        ErrorKind.TIMEOUT,
        "  while (tw::opaque(1)) {}\n" + BODY,
        on_emulator=False,
    ),
    Attack("hog", ErrorKind.MEMORY, workspace_bytes=MORE_MEMORY),
    Attack("crowded", ErrorKind.REJECTED, launch=replace(LAUNCH, shared_bytes=MORE_SHARED)),
    Attack(
        "threads",
        ErrorKind.REJECTED,
        launch=replace(LAUNCH, block=(TOO_MANY_THREADS, 1, 1)),
        on_emulator=False,
    ),
)
