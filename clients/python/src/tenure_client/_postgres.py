"""PostgreSQL's functions ``tenure.try_lead`` and ``tenure.step_down``, through a client of the
user's.

Each call is a transaction of its own, at READ COMMITTED: hand in a pool, or a connection that
nothing else uses and that commits by itself. The id has a random end, so that two processes, or two
starts of one, are never taken for each other.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Mapping
from typing import Any, Callable, Sequence

from ._errors import TenureError
from ._settings import Settings
from ._trust import Told

#: Runs a statement with ``$1``, ``$2`` … and gives its rows, or something to await that does.
Query = Callable[[str, Sequence[Any]], Any]

#: By how much any clock may run fast or slow; and the part of the ttl in which the work stops.
DRIFT = 0.001
MARGIN = 0.1


def query_of(client: Any) -> Query:
    """A query function of what the user has: psycopg (2 and 3, a connection or a pool), asyncpg,
    what the recipe calls ``db`` (``execute(sql, *args)`` gives rows), or such a function."""
    of = type(client).__module__.partition(".")[0]
    if of in ("psycopg", "psycopg_pool", "psycopg2"):
        return _psycopg(client)
    if hasattr(client, "fetch"):
        return lambda sql, params: client.fetch(sql, *params)
    if hasattr(client, "execute"):
        return lambda sql, params: client.execute(sql, *params)
    if callable(client):
        return client  # type: ignore[no-any-return]
    raise TypeError(
        "the first argument must be a connection or pool of psycopg or asyncpg, an object with "
        "execute(sql, *args), or a function that runs a statement"
    )


def _psycopg(client: Any) -> Query:
    waits = "Async" in type(client).__name__
    pooled = hasattr(client, "getconn")
    if not pooled and not getattr(client, "autocommit", True):
        raise ValueError(
            "the connection does not commit by itself: set autocommit, or hand in a pool. In a "
            "transaction that stays open, a call would keep all other members waiting"
        )

    def plain(sql: str, params: Sequence[Any]) -> Any:
        text = re.sub(r"\$\d", "%s", sql)
        if pooled:
            with client.connection() as connection:
                return connection.execute(text, params).fetchall()
        with client.cursor() as cursor:
            cursor.execute(text, params)
            return cursor.fetchall()

    async def waiting(sql: str, params: Sequence[Any]) -> Any:
        text = re.sub(r"\$\d", "%s", sql)
        if pooled:
            async with client.connection() as connection:
                return await (await connection.execute(text, params)).fetchall()
        return await (await client.execute(text, params)).fetchall()

    return waiting if waits else plain


class Postgres:
    """What all attempts of an election share."""

    def __init__(self, settings: Settings, life: str) -> None:
        assert settings.query is not None
        self._settings = settings
        schema = '"' + settings.schema.replace('"', '""') + '".'
        self._named = (settings.namespace, settings.election, life)
        self._lead = (
            "SELECT leads, term, (extract(epoch FROM remaining) * 1000)::float8 AS remaining, asked "
            f"FROM {schema}try_lead($1, $2, $3, make_interval(secs => $4))"
        )
        self._give = f"SELECT {schema}step_down($1, $2, $3) AS given"
        self._query = settings.query
        self._pending = 0
        self._settled = threading.Condition()

    def campaign(self) -> "Postgres":
        return self

    def close(self) -> None:
        # The client is the user's.
        return

    def _run(self, sql: str, params: Sequence[Any], columns: Sequence[str]) -> list[Any]:
        rows = self._query(sql, params)
        if not rows:
            raise TenureError("the function answered no row")
        row = rows[0]
        if isinstance(row, Mapping) and not isinstance(row, tuple):
            return [row[column] for column in columns]
        return [row[at] for at in range(len(columns))]

    def beat(self, _quick: bool, _patience: float) -> Told:
        settings = self._settings
        assert settings.ttl is not None
        columns = ("leads", "term", "remaining", "asked")
        with self._settled:
            self._pending += 1
        try:
            answer = self._run(self._lead, (*self._named, settings.ttl), columns)
        finally:
            with self._settled:
                self._pending -= 1
                self._settled.notify_all()
        leads, term, remaining, asked = answer
        left = float("nan") if remaining is None else float(remaining) / 1000
        if leads is not True:
            # Again when the leader's ttl may have run out; not all who wait at once.
            soon = left + random.random() * settings.beat / 4
            return Told("waiting", next=max(soon, 0.01) if soon < settings.beat else settings.beat)
        if remaining is None or term is None:
            raise TenureError("the answer has no term, or does not say how long it may be trusted")
        trusted = min(left, settings.ttl) * (1 - DRIFT) - settings.ttl * MARGIN
        return Told(
            state="stopping" if asked else "leading",
            term=int(term),
            remaining=max(0.0, trusted),
            reason="an operator asked for a step-down" if asked else None,
            next=settings.beat,
        )

    def resign(self, patience: float) -> None:
        # A call that was given up may still be carried out: it would stand again.
        with self._settled:
            self._settled.wait_for(lambda: self._pending == 0, patience)
        self._run(self._give, self._named, ("given",))
