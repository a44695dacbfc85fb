"""What the two classes share: construction, and what reads the trust."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Optional

from ._clock import now
from ._engine import Engine, Transport
from ._postgres import Postgres, query_of
from ._server import Server
from ._settings import LeaderElectionConfig, Settings, settings


def complete(db: Any, config: Optional[LeaderElectionConfig], more: dict[str, Any]) -> Settings:
    """``LeaderElection(config)``, ``LeaderElection(db, config)``, or names as arguments."""
    if isinstance(db, LeaderElectionConfig):
        if config is not None:
            raise TypeError("the configuration is given twice")
        db, config = None, db
    config = dataclasses.replace(config or LeaderElectionConfig(), **more)
    if db is not None:
        config.query = query_of(db)
    return settings(config)


def transport(settings: Settings) -> Callable[[str], Transport]:
    of = Server if settings.query is None else Postgres
    # Whatever is wrong with an address is said now.
    of(settings, "")
    return lambda life: of(settings, life)


class Reads:
    """What asks nothing of any server."""

    _engine: Engine

    @property
    def is_leader(self) -> bool:
        """Whether this process leads at this instant: a comparison, never a request."""
        return now() < self._engine.trust.until

    def is_current_leader(self) -> bool:
        return now() < self._engine.trust.until

    @property
    def token(self) -> Optional[int]:
        """The fencing token of the term that is led now."""
        trust = self._engine.trust
        return trust.term if now() < trust.until else None

    @property
    def remaining(self) -> float:
        """For how many seconds the present term may be trusted without another answer."""
        return max(0.0, self._engine.trust.until - now())
