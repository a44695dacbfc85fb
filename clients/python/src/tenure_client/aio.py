"""Leader election over ``tenure serve`` or PostgreSQL, for ``asyncio``.

Requests to a server are sent by threads: an event loop that is starved does not cost the term.
Callbacks, and the queries of an asynchronous PostgreSQL client, run on the loop that called
``start``.
"""

from __future__ import annotations

import asyncio
import inspect
from types import TracebackType
from typing import Any, Awaitable, Callable, Optional, TypeVar, Union

from ._engine import Engine
from ._errors import TenureError
from ._settings import LeaderElectionConfig
from ._shared import Reads, complete, transport

__all__ = ["LeaderElection", "LeaderElectionConfig", "TenureError", "run_if_leader"]

T = TypeVar("T")


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class LeaderElection(Reads):
    """Stands for an election. Callbacks may be functions or coroutine functions.

    ``db``: a connection or pool of asyncpg or psycopg; without it, the server of ``config`` is
    asked.
    """

    def __init__(
        self, db: Any = None, config: Optional[LeaderElectionConfig] = None, **more: Any
    ) -> None:
        settings = complete(db, config, more)
        if settings.query is not None:
            query = settings.query

            def on_the_loop(sql: str, params: Any) -> Any:
                loop = self._running_loop()
                rows = query(sql, params)
                if not inspect.isawaitable(rows):
                    return rows
                return asyncio.run_coroutine_threadsafe(_awaited(rows), loop).result()

            settings.query = on_the_loop
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._over: Optional[asyncio.Event] = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._engine = Engine(
            settings, transport(settings), self._spawn, asyncio.Event, self._signal
        )

    async def start(self) -> None:
        """Stands for the election. Returns when it is known whether this process leads, or after a
        second. Errors are no reason to end: they are told to ``on_error``, and it is tried again.
        """
        engine = self._engine
        if engine.thread is None:
            self._loop = asyncio.get_running_loop()
            over = self._over = asyncio.Event()
            engine.ended = lambda: self._signal(over)
            engine.start()
        for _ in range(50):
            if engine.known():
                # What was spawned has begun when we return.
                await asyncio.sleep(0)
                return
            await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """Asks the work to end, waits for it (no longer than the drain), ends trust, calls
        ``on_lose_leadership``, and gives the term back."""
        if self._over is None or self._engine.thread is None:
            return
        self._engine.stop()
        await self._over.wait()

    async def run_if_leader(
        self, work: Callable[[], Union[T, Awaitable[T]]]
    ) -> Optional[T]:
        """Runs ``work`` if this process leads and is not asked to stop; otherwise gives None. The
        term is not given back while it runs, or until the drain is over: look at ``is_leader``."""
        reign = self._engine.enter()
        if reign is None:
            return None
        try:
            value: T = await _awaited(work())
            return value
        finally:
            self._engine.leave(reign)

    @property
    def lost(self) -> asyncio.Event:
        """Set when the present term is over; set already while none is led."""
        return self._event("lost")

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the work under the present term is to end."""
        return self._event("asked")

    def _event(self, which: str) -> asyncio.Event:
        reign = self._engine.reign
        if reign is not None and self.is_leader:
            event: asyncio.Event = getattr(reign, which)
            return event
        over = asyncio.Event()
        over.set()
        return over

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._loop.is_closed():
            # None of the application's code runs any more.
            self._engine.stop()
            raise TenureError("the event loop is closed")
        return self._loop

    def _spawn(self, work: Callable[[], Any], done: Callable[[Optional[BaseException]], None]) -> None:
        async def run() -> None:
            try:
                await _awaited(work())
            except BaseException as error:  # noqa: BLE001: it is reported
                done(error)
            else:
                done(None)

        def begin() -> None:
            task = asyncio.ensure_future(run())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        if not self._on_loop(begin):
            done(None)

    def _signal(self, event: asyncio.Event) -> None:
        self._on_loop(event.set)

    def _on_loop(self, call: Callable[[], Any]) -> bool:
        try:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            # The loop is closed: none of the application's code runs any more.
            self._engine.stop()
            return False
        return True

    async def __aenter__(self) -> "LeaderElection":
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.stop()


async def run_if_leader(
    election: LeaderElection, work: Callable[[], Union[T, Awaitable[T]]]
) -> Optional[T]:
    """Runs ``work`` if this process leads; otherwise gives None."""
    return await election.run_if_leader(work)
