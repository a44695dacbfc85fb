"""Leader election over ``tenure serve`` or PostgreSQL, for programs without an event loop.

``tenure_client.aio`` has the same for ``asyncio``.
"""

from __future__ import annotations

import inspect
import threading
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar

from ._engine import Engine
from ._errors import TenureError
from ._settings import LeaderElectionConfig
from ._shared import Reads, complete, transport

__all__ = ["LeaderElection", "LeaderElectionConfig", "TenureError", "run_if_leader"]

T = TypeVar("T")


def _spawn(work: Callable[[], Any], done: Callable[[Optional[BaseException]], None]) -> None:
    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001: it is reported
            done(error)
        else:
            done(None)

    threading.Thread(target=run, name="tenure-callback", daemon=True).start()


class LeaderElection(Reads):
    """Stands for an election on threads of its own. Callbacks run on threads, too.

    ``db``: a connection or pool of psycopg; without it, the server of ``config`` is asked.
    """

    def __init__(
        self, db: Any = None, config: Optional[LeaderElectionConfig] = None, **more: Any
    ) -> None:
        settings = complete(db, config, more)
        if settings.query is not None:
            query = settings.query

            def at_once(sql: str, params: Any) -> Any:
                rows = query(sql, params)
                if inspect.isawaitable(rows):
                    getattr(rows, "close", lambda: None)()
                    raise TypeError("the client is asynchronous: use tenure_client.aio")
                return rows

            settings.query = at_once
        self._engine = Engine(
            settings, transport(settings), _spawn, threading.Event, lambda event: event.set()
        )

    def start(self) -> None:
        """Stands for the election. Returns when it is known whether this process leads, or after a
        second. Errors are no reason to end: they are told to ``on_error``, and it is tried again.
        """
        engine = self._engine
        with engine.changed:
            engine.start()
            engine.changed.wait_for(engine.known, 1.0)

    def stop(self) -> None:
        """Asks the work to end, waits for it (no longer than the drain), ends trust, calls
        ``on_lose_leadership``, and gives the term back."""
        engine = self._engine
        engine.stop()
        with engine.changed:
            engine.changed.wait_for(lambda: engine.thread is None)

    def run_if_leader(self, work: Callable[[], T]) -> Optional[T]:
        """Runs ``work`` if this process leads and is not asked to stop; otherwise gives None. The
        term is not given back while it runs, or until the drain is over: look at ``is_leader``."""
        reign = self._engine.enter()
        if reign is None:
            return None
        try:
            return work()
        finally:
            self._engine.leave(reign)

    @property
    def lost(self) -> threading.Event:
        """Set when the present term is over; set already while none is led."""
        reign = self._engine.reign
        return reign.lost if reign is not None and self.is_leader else _OVER

    @property
    def stopping(self) -> threading.Event:
        """Set when the work under the present term is to end."""
        reign = self._engine.reign
        return reign.asked if reign is not None and self.is_leader else _OVER

    def __enter__(self) -> "LeaderElection":
        self.start()
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.stop()


_OVER = threading.Event()
_OVER.set()


def run_if_leader(election: LeaderElection, work: Callable[[], T]) -> Optional[T]:
    """Runs ``work`` if this process leads; otherwise gives None."""
    return election.run_if_leader(work)
