"""The page of all comparisons with libraries, as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from experiments.operators.summary import of_tuned
from experiments.overview.entries import CPU, GPU, Entry
from experiments.overview.reading import Found, command, date, load, machine, read

MAKE = "python -m experiments.overview"
UNTUNED = "operators/results/untuned_h200_lines.json"
LAUNCH = "gpu_matmul/results/launch.json"
SHORT, SHORTEST = "operators/results/maps_xeon_1.json", "y[j, i] = x[i, j] 96x64 float32"
"""A file whose rows have the kernel's time beside the call's, and the case with least work."""
MACHINES = {
    "AMD EPYC (family 25 model 1)": "Zen 3",
    "AMD EPYC (family 25 model 17)": "Zen 4",
    "AMD EPYC (family 26 model 2)": "Zen 5",
    "Intel(R) Xeon(R) Processor (family 6 model 207)": "Xeon",
    "NVIDIA H200": "H200",
}
HEAD = ("| kind | what | over the fastest of | on | cases | mean | least | date |", 8)

INTRODUCTION = f"""\
# How fast it is

<!-- Written by `{MAKE}` from committed results; do not edit. -->

![Fastest library's time over ours, by kind of operator](../_static/speedup.svg)

A figure is the time of the fastest library, divided by ours, in one run, in turns. Below 1 the
library was faster. *Mean* is the geometric mean, *least* the worst case. Times are medians; those
of products on a CPU are the least of all rounds. Networks count each operator as often as it
occurs.

On a CPU there is one thread unless said, float32, on a machine that did nothing else. Zen 3 has
AVX2; Zen 4, Zen 5 and the Xeon have AVX-512. On an H200 the L2 cache is cold before each call.

Tables name the mode of figures that were made for one, `numerics="strict"` or `"fast"`. All others
are older than the modes: on a CPU, what used Winograd's algorithm needs `"fast"` today, and on a
GPU no convolution does. See [what a kernel may return](../numerics.md).

Each kind stands on its newest full run. *Again* marks later runs of a few of its cases. The
picture leaves these out, and runs on two threads but for batches of products. The
page and the picture are made from the committed files:

```text
{MAKE}
```
"""

UNTUNED_WORDS = """\
## Without tuning

`best` without a database gives kernels that no one measured. On {on}, {cases} operators of all
kinds were timed that way on {date}. They are {mean:.2f} as fast as tuned ones in the geometric
mean; the least is {least:.2f}. The file is `experiments/{file}`.
"""

CALL_WORDS = """\
## What a call costs

A call from Python of a kernel that hardly computes takes {ours:.1f} us on an {device}, and one of
`torch.mm` {torch:.1f}. The file is `experiments/{file}`.

On one thread of a {cpu}, a kernel of {kernel:.1f} us takes {call:.1f} us when called from Python
(`{case}`). The file is `experiments/{cpu_file}`.
"""

OTHERS = """\
## Other experiments

Each folder of `experiments/` has a page with its question, its command and its conclusion:

- `search`, `replay`: how soon the search finds fast schedules, and how well the cost model ranks.
- `suites`: how trials are shared among the workloads of a suite.
- `verification`, `gpu_attacks`: random and harmful kernels on a real GPU.
- `mutation`: which planted faults the tests see.
- `overheads`, `judging`, `database`, `cluster`: what the tuner takes for itself.
- `timing_noise`: which statistic of timings ranks kernels best.
- `tvm_peer`, `kernel_tuner_peer`: other tuners on the same problems.
- `regressions`: whether kernels are as fast as before.
"""


def page(entries: Sequence[Entry]) -> str:
    """Return the whole page."""
    found = [(entry, read(entry)) for entry in entries]
    parts = [INTRODUCTION]
    for device, title in ((CPU, "On a CPU"), (GPU, "On an H200")):
        parts.append("\n".join([f"## {title}", "", *_table(found, device), ""]))
    parts.append("\n".join(["## Networks", "", *_networks(found), ""]))
    parts.append("\n".join(["## What is lost", "", *_losses(found), ""]))
    parts += [_untuned(), _call(), OTHERS]
    parts.append("\n".join(["## Files and commands", "", *_commands(entries)]))
    return "\n".join(parts)


def _table(found: Sequence[tuple[Entry, Found]], device: str) -> Iterator[str]:
    yield HEAD[0]
    yield "| --- " * HEAD[1] + "|"
    for entry, cases in found:
        if entry.device == device:
            what = entry.what + (", again" if entry.again else "")
            what += _mode(entry, cases)
            days = ", ".join(dict.fromkeys(map(date, entry.files)))
            cells = [entry.kind, what, entry.over, _on(entry), str(len(cases.cases))]
            cells += [f"{cases.mean:.2f}", _ratio(cases.least.ratio), days]
            yield f"| {' | '.join(cells)} |"


def _mode(entry: Entry, cases: Found) -> str:
    """Return the mode of an entry's kernels, and how many of them are Winograd's."""
    mode = entry.numerics or ("fast" if cases.winograd else "")
    own = [f"{cases.winograd} with Winograd"] * bool(cases.winograd)
    own += [f'`numerics="{mode}"`'] * bool(mode)
    return f" ({', '.join(own)})" if own else ""


def _networks(found: Sequence[tuple[Entry, Found]]) -> Iterator[str]:
    yield "| network | on | the fastest at each operator, over ours |"
    yield "| --- | --- | --- |"
    for entry, cases in found:
        if cases.points != cases.cases and not entry.again:
            for point in cases.points:
                yield f"| {point.name} | {_on(entry)} | {point.ratio:.2f} |"


def _losses(found: Sequence[tuple[Entry, Found]]) -> Iterator[str]:
    yield "| kind | case | on | ratio | date |"
    yield "| --- | --- | --- | --- | --- |"
    for entry, cases in found:
        for case in cases.losses:
            kind = f"{entry.kind}: {entry.what}" + (", again" if entry.again else "")
            name = f"`{case.name}`" + (f", against {case.rival}" if case.rival else "")
            day = date(entry.files[-1])
            yield f"| {kind} | {name} | {_on(entry)} | {_ratio(case.ratio)} | {day} |"


def _untuned() -> str:
    shares = of_tuned(load(UNTUNED)["cases"])
    return UNTUNED_WORDS.format(
        on="an H200",
        cases=len(shares),
        date=date(UNTUNED),
        mean=statistics.geometric_mean(shares),
        least=min(shares),
        file=UNTUNED,
    )


def _call() -> str:
    calls = load(LAUNCH)
    times = calls["us_per_call"]
    row = load(SHORT)["cases"][SHORTEST]
    return CALL_WORDS.format(
        ours=times["tilewright"],
        torch=times["torch.mm"],
        device=MACHINES[calls["device"]],
        file=LAUNCH,
        cpu=MACHINES[machine(SHORT)],
        kernel=1e6 * row["kernel_s"],
        call=1e6 * row["median_s"]["tilewright"],
        case=SHORTEST,
        cpu_file=SHORT,
    )


def _commands(entries: Sequence[Entry]) -> Iterator[str]:
    for file in dict.fromkeys(file for entry in entries for file in entry.files):
        yield f"`experiments/{file}`, {date(file)}, {machine(file)}:"
        yield ""
        yield f"```text\n{command(file)}\n```"
        yield ""


def _on(entry: Entry) -> str:
    return MACHINES[machine(entry.files[0])]


def _ratio(ratio: float) -> str:
    """Return three digits of a loss, two of which might hide it."""
    return f"{ratio:.3f}" if ratio < 1 else f"{ratio:.2f}"
