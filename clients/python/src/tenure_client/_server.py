"""Sessions of ``tenure serve``, over TCP, TLS or a Unix socket."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import uuid
from typing import Any, Callable, Optional
from urllib.parse import quote, urlsplit

from ._clock import now
from ._errors import TenureError, problem
from ._settings import Settings
from ._trust import Told


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _opened(settings: Settings) -> tuple[Callable[[], http.client.HTTPConnection], str]:
    """An address is never shown: it may hold a password."""
    address = settings.server
    if address.startswith("unix:"):
        path = address[len("unix:") :]
        return (lambda: _Unix(path)), ""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        raise ValueError(
            "server must be http://host:port, https://host:port or unix:/path, without user and "
            "password: give a token as access_token"
        )
    prefix = parts.path.rstrip("/")
    if parts.scheme == "http":
        return (lambda: http.client.HTTPConnection(host, port)), prefix
    context = settings.ssl_context or ssl.create_default_context()
    return (lambda: http.client.HTTPSConnection(host, port, context=context)), prefix


class Server:
    """What all sessions of an election share: the way to the server."""

    def __init__(self, settings: Settings, _life: str) -> None:
        self.settings = settings
        self._connect, self._prefix = _opened(settings)
        self._lock = threading.Lock()
        self._idle: Optional[http.client.HTTPConnection] = None
        self._closed = False

    def post(self, path: str, body: object, timeout: float, key: Optional[str] = None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        token = self.settings.access_token
        if callable(token):
            token = token()
        if token is not None:
            token = token.strip()
            # The standard library would repeat it in its error.
            if not (token.isascii() and token.isprintable()):
                raise TenureError("the access token must be one line of printable ASCII")
            headers["Authorization"] = f"Bearer {token}"
        with self._lock:
            connection, self._idle = self._idle or self._connect(), None
        try:
            connection.timeout = timeout
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request("POST", self._prefix + path, json.dumps(body), headers)
            answer = connection.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            why = str(error) or type(error).__name__
            raise TenureError(f"the server cannot be reached: {why}", "unreachable") from error
        self._keep(connection)
        parsed: Any = None
        if 200 <= answer.status <= 299:
            try:
                parsed = json.loads(said)
            except ValueError:
                pass
        if not isinstance(parsed, dict) or not isinstance(parsed.get("state"), str):
            raise problem(answer.status, said, answer.getheader("Retry-After"))
        return parsed

    def _keep(self, connection: Optional[http.client.HTTPConnection]) -> None:
        with self._lock:
            if not self._closed:
                connection, self._idle = self._idle, connection
        if connection is not None:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            spare, self._idle = self._idle, None
        if spare is not None:
            spare.close()

    def campaign(self) -> "_Session":
        return _Session(self)


class _Session:
    def __init__(self, server: Server) -> None:
        self._server = server
        # Begun again under the same key, it is the same session.
        self._key = str(uuid.uuid4())
        self._session: Optional[str] = None
        self._seen: Any = 0

    def beat(self, quick: bool, patience: float) -> Told:
        settings = self._server.settings
        assert settings.ttl is not None and settings.drain is not None and settings.election
        came = now()
        wait = 0.0 if quick else settings.beat
        if self._session is None:
            path = f"/v1/elections/{quote(settings.election, safe='')}/sessions"
            asked = {
                "id": settings.id,
                "ttl_ms": round(settings.ttl * 1000),
                "drain_ms": round(settings.drain * 1000),
                "endpoints": list(settings.endpoints),
                "metadata": settings.metadata,
            }
            if settings.priority is not None:
                asked["priority"] = settings.priority
            told = self._server.post(path, asked, patience, self._key)
            idle = False
        else:
            body = {"seen": self._seen, "wait_ms": int(wait * 1000)}
            told = self._server.post(f"{self._path()}/beat", body, patience)
            # Nothing new, and it did not wait: then we do.
            idle = told.get("seen") == self._seen and now() - came < wait / 4
        self._session = str(told.get("session"))
        self._seen = told.get("seen")
        return Told(
            state=told["state"],
            term=told.get("term"),
            remaining=_seconds(told.get("remaining_ms"), 0.0),
            ttl=_seconds(told.get("ttl_ms"), settings.ttl),
            drain=_seconds(told.get("drain_ms"), settings.drain),
            reason=told.get("reason"),
            next=settings.beat / 4 if idle else 0.0,
        )

    def resign(self, patience: float) -> None:
        if self._session is None:
            return
        try:
            self._server.post(f"{self._path()}/resign", {}, patience)
        except TenureError as error:
            # Forgotten already, which is as good.
            if error.code != "no_session":
                raise

    def _path(self) -> str:
        return f"/v1/sessions/{quote(str(self._session), safe='')}"


def _seconds(millis: Any, otherwise: float) -> float:
    return millis / 1000 if isinstance(millis, (int, float)) else otherwise
