"""Serve the report of a database as a page that is renewed while results arrive.

The server only reads. It answers whoever knows the token of the printed address, and no page of
another site: the headers ``Host`` and ``Origin`` must name it.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tilewright.measure.database import Database
from tilewright.measure.tables.retries import UnavailableError, waiting
from tilewright.scheduler.cli.text import without_passwords
from tilewright.scheduler.extras import extra
from tilewright.scheduler.report.material import read_materials
from tilewright.scheduler.report.pages.live import Jobs, Live, live_part
from tilewright.scheduler.report.pages.page import check_library, report_page
from tilewright.spaces.errors import InputError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from tilewright.measure.cluster.following import ClusterWatch

LOOPBACK = "127.0.0.1"
ANY = ("0.0.0.0", "::", "")
"""Hosts to listen on that mean all addresses of this machine."""
REST = 80.0
"""Says for how many times the processor time of making it something is shown, at least."""
CONNECTIONS = 100
"""Requests that are answered at a time: a browser that stops reading keeps one of them."""
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
LOG = logging.getLogger("tilewright.dashboard")
Made = TypeVar("Made")


def check_libraries() -> None:
    """Raise :class:`InputError` where a library is missing."""
    check_library()
    for library in ("starlette", "uvicorn"):
        extra(library, "dashboard", "the dashboard")


class Rested(Generic[Made]):
    """Something that is made anew when it is asked for, by one thread at a time, and not before a
    rest :data:`REST` times the processor time that making it took. Others get the last one
    meanwhile. After the first one, which loads what making it needs, there is no rest."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: list[Made] = []
        self._next = 0.0

    @property
    def is_due(self) -> bool:
        """Tell whether it would be made anew if it was asked for now."""
        return time.monotonic() >= self._next

    def get(self) -> Made:
        """Return it as it is now, or was a moment ago."""
        if self._lock.acquire(blocking=not self._made):
            try:
                if self.is_due or not self._made:
                    self._renew()
            finally:
                self._lock.release()
        return self._made[0]

    def _renew(self) -> None:
        begun, is_first = time.thread_time(), not self._made
        try:
            self._made = [self._make()]
        except UnavailableError:
            if is_first:
                raise
        rest = 0.0 if is_first else REST * (time.thread_time() - begun)
        self._next = time.monotonic() + rest


class Pages:
    """The page of a database, and its news: the jobs, the cluster, and a text that is another one
    once the page can be made anew."""

    def __init__(
        self,
        database: Database,
        db: str,
        words: Sequence[str],
        cluster: ClusterWatch | None = None,
    ) -> None:
        self._database, self._db, self._words, self._cluster = database, db, words, cluster
        self._jobs = Jobs(database)
        self._state = ""  # of the page
        self._content = b""
        self._page = Rested(self._made_page)
        self._part = Rested(lambda: live_part(self._jobs.rows(), self._cluster))

    def news(self) -> dict[str, str]:
        """Return the state and the first part of the page. Raises :class:`UnavailableError` while
        the database is out of reach."""
        state = self._now()
        is_same = not self._page.is_due
        return {"state": self._state if is_same else state, "part": self._part.get()}

    def page(self) -> bytes:
        """Return the page as it is now, or was a moment ago."""
        return self._page.get()

    def _made_page(self) -> bytes:
        state = self._now()
        if state != self._state:
            materials = read_materials(self._database, self._words, may_be_empty=True)
            live = Live(state, self._part.get())
            self._content = report_page(materials, self._db, live=live).encode()
            self._state = state
        return self._content

    def _now(self) -> str:
        return hashlib.sha256(repr(self._database.news()).encode()).hexdigest()[:16]


def application(pages: Pages, token: str, names: Collection[str], port: int) -> Starlette:
    """Return the application that serves ``pages`` to whoever has the ``token``, and calls it by
    one of these ``names`` and the ``port``."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

    allowed = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
    given = token.encode()

    def refusal(request: Request) -> Response | None:
        """Return the answer to a request that is refused, or None."""
        origin = request.headers.get("origin")
        called = [request.headers.get("host", "")]
        called += [] if origin is None else [origin.partition("://")[2]]
        if any(name.lower() not in allowed for name in called):
            why = "it is of another site"
        elif not secrets.compare_digest(request.query_params.get("token", "").encode(), given):
            why = "its token is wrong"
        else:
            return None
        LOG.warning("refused a request from %s: %s", request.client and request.client.host, why)
        return PlainTextResponse(f"refused: {why}\n", 403, HEADERS)

    def answered(request: Request, make: Callable[[], Response]) -> Response:
        if (refused := refusal(request)) is not None:
            return refused
        try:
            with waiting(0.0):
                return make()
        except InputError as error:
            return PlainTextResponse(f"{without_passwords(str(error))}\n", 503, HEADERS)

    def page(request: Request) -> Response:
        return answered(
            request, lambda: Response(pages.page(), media_type="text/html", headers=HEADERS)
        )

    def news(request: Request) -> Response:
        return answered(request, lambda: JSONResponse(pages.news(), headers=HEADERS))

    return Starlette(routes=[Route("/", page), Route("/news", news)])


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; :class:`InputError` if there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}; "
            "allowed: another --port, or 0 for a free one"
        ) from None


def names_of(host: str) -> list[str]:
    """Return the names by which a browser may call a server that listens on ``host``, the one to
    print first. Where it listens on all addresses, those are the machine's own."""
    local = [LOOPBACK, "localhost", "[::1]"]
    if host not in ANY:
        own = f"[{host}]" if ":" in host else host
        return list(dict.fromkeys([own.lower(), *local]))
    name = socket.gethostname()
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
    except OSError:
        found = set()
    addresses = [f"[{each}]" if ":" in each else each for each in sorted(found)]
    return list(dict.fromkeys([name.lower(), socket.getfqdn().lower(), *addresses, *local]))


def address_of(listening: socket.socket, host: str, token: str) -> str:
    """Return the address that a browser opens."""
    return f"http://{names_of(host)[0]}:{listening.getsockname()[1]}/?token={token}"


def serve(listening: socket.socket, host: str, pages: Pages, token: str) -> None:
    """Answer requests until the process is told to end."""
    import uvicorn

    app = application(pages, token, names_of(host), listening.getsockname()[1])
    options: dict[str, Any] = {"access_log": False, "server_header": False}
    options |= {"log_level": "warning", "limit_concurrency": CONNECTIONS}
    uvicorn.Server(uvicorn.Config(app, **options)).run(sockets=[listening])
