"""One JSON object a line, for programs that watch a tuning run."""

from __future__ import annotations

import json
from typing import Self

from tilewright.scheduler.cli.output import put
from tilewright.scheduler.tuning.events import Compared, Event, Progress


class JsonLines:
    """Prints the start, each trial and the result as a line of JSON
    (:mod:`scheduler.tuning.events`). The result says what the run was compared with."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def tell(self, event: Event) -> None:
        """Print one event."""
        asked = isinstance(event, Progress) and event.latest is None
        if not (asked or isinstance(event, Compared)):
            put(json.dumps(event.to_json()))
