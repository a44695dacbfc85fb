"""What the tests share: a real ``tenure serve``, a server that answers as it is told, waiting."""

import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from typing import Any, Callable, Optional

from tenure_client import LeaderElection

ROOT = pathlib.Path(__file__).parents[3]
TENURE = os.environ.get("TENURE_BIN", str(ROOT / "target" / "debug" / "tenure"))


def until(what: str, look: Callable[[], Any]) -> Any:
    """Waits until ``look`` answers something; the limit only ends a test that has failed."""
    began = time.monotonic()
    while time.monotonic() - began < 60:
        seen = look()
        if seen:
            return seen
        time.sleep(0.005)
    raise AssertionError(f"waited 60 seconds in vain for {what}")


#: Of the tests: long enough for a machine that has other things to do.
TTL = 1.5


class Serve:
    """A server on a store of its own, which can be killed and started again."""

    def __init__(self, test: unittest.TestCase, args: tuple[str, ...] = (), unix: bool = False):
        self.dir = tempfile.mkdtemp(prefix="tenure-py-")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.listen = f"unix:{self.dir}/s" if unix else f"127.0.0.1:{port}"
        self.url = self.listen if unix else f"http://{self.listen}"
        self.args = args
        test.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        test.addCleanup(self.kill)
        self.up()

    def up(self) -> None:
        line = [TENURE, "serve", "--store", f"sqlite:{self.dir}/t.db", "--ttl", "1500ms"]
        env = {"PATH": os.environ["PATH"], "HOME": self.dir}
        self.process = subprocess.Popen(
            [*line, "--listen", self.listen, *self.args], env=env, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), "tenure serve has ended"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def post(self, path: str, body: object) -> None:
        headers = {"Content-Type": "application/json"}
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        urllib.request.urlopen(request, timeout=10).close()


class Stands:
    """An election whose callbacks are written down, and which ends with its test."""

    def __init__(self, test: unittest.TestCase, db: Any = None, **more: Any) -> None:
        self.told: list[str] = []
        self.errors: list[Any] = []
        config: dict[str, Any] = {
            "election": "jobs",
            "ttl": TTL,
            "on_become_leader": lambda: self.told.append(f"became {self.election.token}"),
            "on_stopping": lambda why: self.told.append(f"stopping: {why}"),
            "on_lose_leadership": lambda: self.told.append("lost"),
            "on_error": self.errors.append,
        }
        self.election = LeaderElection(db, **{**config, **more})
        test.addCleanup(self.election.stop)

    def start(self) -> "Stands":
        self.election.start()
        return self

    def leads(self) -> None:
        until("a leader", lambda: self.election.is_leader)


Answer = Callable[[str, int], Any]


class Fake:
    """A server that answers as it is told: a body, a pair of status and bytes, or not at all."""

    def __init__(self, test: unittest.TestCase, answer: Answer) -> None:
        self.asked: list[tuple[str, Any, dict[str, str]]] = []
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                fake.asked.append((self.path, json.loads(body), dict(self.headers)))
                said: Any = answer(self.path, len(fake.asked))
                status = 200
                if isinstance(said, tuple):
                    status, said = said
                if said is None:
                    self.close_connection = True
                    return
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    pass

            def log_message(self, *_: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)


def leading(**more: Any) -> dict[str, Any]:
    plain = {"session": "s", "state": "leading", "seen": 2, "term": 7}
    return {**plain, "remaining_ms": 1400, "ttl_ms": 1500, **more}


WAITING = {"session": "s", "state": "waiting", "seen": 1, "remaining_ms": 0, "ttl_ms": 1500}
OVER = {**WAITING, "state": "lost", "seen": 3}


def is_begin(path: str) -> bool:
    return path.endswith("/sessions")


def is_resign(path: str) -> bool:
    return path.endswith("/resign")


def later(seconds: float, said: Any) -> Any:
    time.sleep(seconds)
    return said


def environment(name: str) -> str:
    value: Optional[str] = os.environ.get(name)
    assert value, f"{name} is not set: run `cargo xtask test`"
    return value
