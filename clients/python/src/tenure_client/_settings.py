"""What an election is told, checked before anything begins."""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass, field, fields
from typing import Any, Callable, Optional, Sequence, Union

Callback = Callable[..., Any]


@dataclass
class LeaderElectionConfig:
    """The first six are those of the recipe that this package takes the place of, in its order;
    all spans are in seconds."""

    #: The election; the same as ``election``.
    service_name: Optional[str] = None
    #: Who stands: shown to operators. Default: host name and process id. The same as ``id``.
    candidate_id: Optional[str] = None
    #: How far apart the signs of life are, at most a third of the ttl. Default: a quarter of it.
    heartbeat_interval: Optional[float] = None
    #: After how long without a sign of life another member leads. Default: 10. The same as ``ttl``.
    heartbeat_timeout: Optional[float] = None
    #: A term has begun. What runs in it, or in what it returns, is work that a hand-over waits for.
    on_become_leader: Optional[Callable[[], Any]] = None
    #: The term is over. Called by a timer when trust ends: it waits for no request.
    on_lose_leadership: Optional[Callable[[], Any]] = None

    election: Optional[str] = None
    id: Optional[str] = None
    ttl: Optional[float] = None
    #: How long the work may take to end when this process is to stop leading. Default: the ttl.
    drain: Optional[float] = None
    #: The work is to end; the term goes on until it has, or until the drain is over.
    on_stopping: Optional[Callable[[str], Any]] = None
    #: What went wrong; it is tried again in any case. Default: a warning of ``logging``.
    on_error: Optional[Callable[[Exception], Any]] = None

    #: Where ``tenure serve`` listens: ``http://127.0.0.1:7117``, ``https://…``, ``unix:/path``.
    server: str = field(default="http://127.0.0.1:7117", repr=False)
    #: The bearer token that the server asks for; a function is asked before each request.
    access_token: Union[str, Callable[[], str], None] = field(default=None, repr=False)
    ssl_context: Optional[ssl.SSLContext] = field(default=None, repr=False)
    priority: Optional[int] = None
    endpoints: Sequence[str] = ()
    metadata: str = ""

    #: Runs a statement on PostgreSQL: then no server is needed. See ``_postgres.py``.
    query: Optional[Callable[..., Any]] = field(default=None, repr=False)
    namespace: str = "default"
    schema: str = "tenure"


@dataclass
class Settings(LeaderElectionConfig):
    """The same, complete: ``election``, ``id``, ``ttl``, ``drain`` and ``beat`` are set."""

    beat: float = 0.0


def _refuse(what: str) -> None:
    raise ValueError(f"{what}; the election was not started")


def _name(what: str, text: object) -> str:
    if not isinstance(text, str) or not 1 <= len(text.encode()) <= 180:
        _refuse(f"{what} must be a text of 1 to 180 bytes")
    return str(text)


def settings(config: LeaderElectionConfig) -> Settings:
    """Checks what was asked for, and fills in the rest."""
    all_ = Settings(**{f.name: getattr(config, f.name) for f in fields(LeaderElectionConfig)})
    ttl = float(_first(config.ttl, config.heartbeat_timeout, 10.0))
    if not 0.1 <= ttl <= 86_400:
        _refuse("the ttl must be 0.1 to 86400 seconds")
    beat = float(_first(config.heartbeat_interval, ttl / 4))
    if not 0.01 <= beat <= ttl / 3:
        _refuse(
            f"heartbeat_interval is {beat}, and must be 0.01 to {ttl / 3:.3f}, a third of the ttl: "
            "one request may fail, and the next must come before trust has ended"
        )
    drain = float(_first(config.drain, min(ttl, 600.0)))
    if not 0 <= drain <= 600:
        _refuse("drain must be 0 to 600 seconds")
    default = f"{socket.gethostname()}-{os.getpid()}"
    all_.election = _name("election (or service_name)", _first(config.election, config.service_name))
    all_.id = _name("id (or candidate_id)", _first(config.id, config.candidate_id, default))
    all_.ttl, all_.beat, all_.drain = ttl, beat, drain
    return all_


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
