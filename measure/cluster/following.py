"""Follow what the drivers that use a cluster say of themselves, for as long as somebody watches."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from tilewright.measure.cluster.host_services import HOST
from tilewright.measure.cluster.status import DriverStatus, readable
from tilewright.measure.cluster.transport.link import Link
from tilewright.spaces.errors import InputError

AGAIN_SECONDS = 5.0
"""Time after which a cluster that was lost is asked again."""


class ClusterWatch:
    """Asks the cluster at ``address`` once a second, in a thread. What it knows is in ``drivers``;
    ``trouble`` says why it knows nothing newer, and is empty while the cluster answers."""

    def __init__(self, address: str, insecure: bool = False) -> None:
        self.address = address
        self.drivers: Sequence[DriverStatus] = ()
        self.trouble = ""
        self._insecure = insecure
        self._known = threading.Event()
        self._ending = threading.Event()
        self._link: Link | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Wait for the first answer; :class:`InputError` if the cluster refused or is none."""
        self._known.wait()
        if self.trouble:
            raise InputError(self.trouble)

    def close(self) -> None:
        """Leave the cluster. Idempotent."""
        self._ending.set()
        if self._link is not None:
            self._link.close()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ending.is_set():
            with closing(self._opened()) as link:
                for event in link.events():
                    self._take(link, event)
                words = link.last_words()
            self.trouble = self.trouble or f"the Ray cluster at {self.address} is lost: {words}"
            self._known.set()
            self._ending.wait(AGAIN_SECONDS)

    def _opened(self) -> Link:
        about = {"address": self.address, "insecure": self._insecure}
        self._link = Link(**about, host_services=HOST, code=[])
        if self._ending.is_set():
            self._link.close()
        return self._link

    def _take(self, link: Link, event: dict[str, Any]) -> None:
        if event["event"] == "refused":
            self.trouble = str(event["why"])
        elif event["event"] == "lost":
            self.trouble = f"the Ray cluster at {self.address} is lost: {event['why']}"
        elif event["event"] in ("connected", "nodes", "pulse"):  # one of them each second
            link.send(do="collect")
        elif event["event"] == "published":
            self.drivers, self.trouble = readable(event["texts"]), ""
            self._known.set()
