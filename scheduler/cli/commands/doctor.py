"""``tilewright doctor``."""

from __future__ import annotations

from tilewright.scheduler.cli.options import Threads
from tilewright.spaces.errors import InputError


def doctor_command(threads: Threads = None) -> None:
    """Print what this machine has: compiler, CPU, peaks, NumPy's BLAS, optional packages."""
    from tilewright.scheduler.cli.output import print_table
    from tilewright.scheduler.doctor import State, diagnose

    findings = list(diagnose(1 if threads is None else threads))
    rows = [(finding.name, str(finding.state), finding.text) for finding in findings]
    print_table(("what", "state", "finding"), rows)
    for finding in findings:
        if finding.state is State.ERROR:
            raise InputError(finding.text)
