"""Exports as rows for the tables: each line is read and checked, those of a large file by processes
of their own.

    python -m measure.tables.parsing FILE PART PARTS

Chunks of lines are dealt to the processes in turn. Each says what its chunks hold, a line of JSON a
chunk, and the parent takes them in the order of the file.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from tilewright.measure.cpu.cores import usable_cpus
from tilewright.measure.records.fields import Fields
from tilewright.measure.records.jsonl import numbered_lines, read_line
from tilewright.measure.records.plausibility import why_implausible
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Run, run_from_json
from tilewright.measure.tables.described import described_target, described_workload
from tilewright.measure.tables.inserting import Pair, Row
from tilewright.measure.tables.rows import ROW, to_row
from tilewright.spaces.errors import InputError

LINES_PER_CHUNK = 1000
CHUNKS_AHEAD = 16  # chunks of each process that are read ahead
BYTES_PER_PROCESS = 32 << 20  # a smaller share of a file is not worth a process
MOST_PROCESSES = 4  # more give a database more rows than it takes
_ROOT = Path(__file__).parents[2]


@dataclass
class Chunk:
    """The content of some lines, as JSON values: ``runs``, and ``rows`` of records, each after the
    place of its workload and target in ``pairs``.

    ``refused`` maps each reason why records cannot be true to their lines. ``torn`` is the
    incomplete line; ``malformed`` says why the file cannot be read further.
    """

    pairs: list[tuple[Any, Any]] = field(default_factory=list)
    runs: list[Any] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    refused: dict[str, list[int]] = field(default_factory=dict)
    torn: int | None = None
    malformed: str = ""

    def held(self) -> tuple[list[Run], list[tuple[Pair, Row]]]:
        """Return the runs, and the records' rows with what they are of."""
        pairs = [_pair(*described) for described in self.pairs]
        rows = [(pairs[place], dict(zip(ROW, row, strict=True))) for place, *row in self.rows]
        return [run_from_json(run) for run in self.runs], rows


def parsed(path: Path) -> Generator[Chunk]:
    """Yield all chunks of an export, in order, up to the first that is torn or malformed."""
    count = _processes(path)
    with ExitStack() as stack:
        parts: list[Iterator[Chunk]] = [_chunks(path, 0, 1)]
        if count > 1:
            readers = [stack.enter_context(_Reader(path, part, count)) for part in range(count)]
            parts = [reader.chunks() for reader in readers]
        for part in cycle(parts):
            chunk = next(part, None)
            if chunk is None:
                return
            yield chunk
            if chunk.torn is not None or chunk.malformed:
                return


def _processes(path: Path) -> int:
    """Say how many processes are to read; one is this one."""
    size = path.stat().st_size if path.is_file() else 0
    return max(1, min(MOST_PROCESSES, usable_cpus(), size // BYTES_PER_PROCESS))


class _Reader:
    """A process that reads one part, and a thread that takes what it says while others are busy. A
    context manager: both end with it."""

    def __init__(self, path: Path, part: int, parts: int) -> None:
        self._path = path
        self._lines: queue.Queue[bytes] = queue.Queue(CHUNKS_AHEAD)
        self._closed = False
        folders = [str(_ROOT), *filter(None, sys.path[1:])]
        command = (sys.executable, "-P", "-m", "tilewright.measure.tables.parsing")
        self._process = subprocess.Popen(
            [*command, str(path), str(part), str(parts)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
            start_new_session=True,  # a Ctrl-C is the parent's to answer
        )
        self._thread = threading.Thread(target=self._take, name="import", daemon=True)
        self._thread.start()

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._process.kill()
        with suppress(queue.Empty):
            while True:
                self._lines.get_nowait()  # the thread may wait for room
        self._thread.join()
        self._process.wait()

    def chunks(self) -> Iterator[Chunk]:
        """Yield the process's chunks in order."""
        while line := self._lines.get():
            yield Chunk(**json.loads(line))
        if code := self._process.wait():
            raise RuntimeError(f"a process that read {self._path} ended with exit code {code}")

    def _take(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as said:
            for line in said:
                if line.endswith(b"\n"):  # the last one of a process that was killed is torn
                    self._lines.put(line)
                if self._closed:
                    return
        self._lines.put(b"")


def _chunks(path: Path, part: int, parts: int) -> Iterator[Chunk]:
    """Yield every ``parts``-th chunk of an export, from number ``part`` on."""
    chunk = _Parsing()
    try:
        with numbered_lines(path) as (version, lines):
            for place, (number, line) in enumerate(lines):
                number_of_chunk, first = divmod(place, LINES_PER_CHUNK)
                mine = number_of_chunk % parts == part
                if not first and chunk.seen:
                    yield chunk.chunk
                    chunk = _Parsing()
                if mine and not chunk.take(read_line(path, number, line, version), number):
                    break
    except InputError as error:
        chunk.chunk.malformed = str(error)
    if chunk.seen or chunk.chunk.malformed:
        yield chunk.chunk


class _Parsing:
    """A chunk that is being made; ``seen`` if it has had a line."""

    def __init__(self) -> None:
        self.chunk, self.seen = Chunk(), False
        self._places: dict[tuple[str, str], int] = {}

    def take(self, part: Run | Record | None, number: int) -> bool:
        """Note what the next line holds, None if that is torn; whether more may follow."""
        self.seen = True
        if part is None:
            self.chunk.torn = number
        elif isinstance(part, Run):
            self.chunk.runs.append(part.to_json())
        elif reason := why_implausible(part):
            self.chunk.refused.setdefault(reason, []).append(number)
        else:
            row = to_row(part)
            self.chunk.rows.append([self._place(part), *(row[column] for column in ROW)])
        return part is not None

    def _place(self, record: Record) -> int:
        key = record.workload.key, record.target.fingerprint
        if key not in self._places:
            self._places[key] = len(self.chunk.pairs)
            self.chunk.pairs.append((record.workload.to_json(), record.target.to_json()))
        return self._places[key]


def _pair(workload: Any, target: Any) -> Pair:
    fields = Fields({"workload": workload, "target": target})
    return Pair(described_workload(fields), described_target(fields))


def main() -> None:
    """Say the chunks of one part."""
    path, part, parts = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for chunk in _chunks(path, part, parts):
        print(json.dumps(vars(chunk)), flush=True)


if __name__ == "__main__":
    main()
