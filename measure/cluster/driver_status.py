"""Asks a cluster what the drivers that use it have said of themselves."""

from __future__ import annotations

from contextlib import closing

from tilewright.measure.cluster.driver.dispatcher import LostClusterError
from tilewright.measure.cluster.host_services import HOST
from tilewright.measure.cluster.status import DriverStatus, readable
from tilewright.measure.cluster.transport.link import Link
from tilewright.spaces.errors import InputError


def drivers_at(address: str, insecure: bool = False) -> list[DriverStatus]:
    """Return the last status of each driver of the cluster at ``address``, without malformed ones.

    Raises :class:`InputError` as :class:`measure.cluster.executor.RayExecutor` does.
    """
    link = Link(address=address, insecure=insecure, host_services=HOST, code=[])
    with closing(link):
        for event in link.events():
            if event["event"] == "refused":
                raise InputError(event["why"])
            if event["event"] == "connected":
                link.send(do="collect")
            if event["event"] == "published":
                return readable(event["texts"])
    raise LostClusterError(f"the Ray cluster at {address} is lost: {link.last_words():.300}")
