"""One member of the run under faults. It stands, and while it leads it writes: when it was led, to
its own log, and a number, under the fence. Only a signal ends it."""

import os
import signal
import sys
import threading
import time
from typing import Any, Optional

import psycopg

from tenure_client import LeaderElection
from tenure_client._postgres import query_of

transport, server, database, namespace, name, log, ttl = sys.argv[1:]
file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def say(line: str) -> None:
    os.write(file, f"{line}\n".encode())


def connect(autocommit: bool) -> Any:
    # A connection that is gone without a word is given up, too.
    return psycopg.connect(
        database, autocommit=autocommit, application_name=name, connect_timeout=2, tcp_user_timeout=2000
    )


class Calls:
    """A connection for the election, made anew when it is gone."""

    connection: Optional[Any] = None
    lock = threading.Lock()

    def query(self, sql: str, params: Any) -> Any:
        with self.lock:
            if self.connection is None:
                self.connection = connect(autocommit=True)
            try:
                return query_of(self.connection)(sql, params)
            except psycopg.OperationalError:
                self.connection.close()
                self.connection = None
                raise


more: dict[str, Any] = {"server": server}
if transport == "postgres":
    more = {"query": Calls().query, "namespace": namespace}
election = LeaderElection(
    election="jobs", id=name, ttl=int(ttl) / 1000, on_error=lambda error: say(f"E {error.code}"), **more
)


def sample() -> None:
    while True:
        # The clock first: what is written down was so at that moment, or later.
        at = time.monotonic_ns()
        token = election.token
        if token is not None:
            say(f"L {token} {at}")
        time.sleep(0.004)


def write(db: Any, token: int) -> None:
    with db.transaction():
        # A member that is stopped in here would keep all others from leading: its fence holds.
        db.execute("SET LOCAL idle_in_transaction_session_timeout = '1s'")
        db.execute("SELECT tenure.fence(%s, %s, %s)", (namespace, "jobs", token))
        n = db.execute(f'SELECT n FROM "{namespace}".counter').fetchone()[0] + 1
        time.sleep(0.002)
        db.execute(f'UPDATE "{namespace}".counter SET n = %s', (n,))
        db.execute(f'INSERT INTO "{namespace}".ledger VALUES (%s, %s, %s)', (n, token, name))
    say(f"C {token} {n}")


def stop(*_: object) -> None:
    def end() -> None:
        election.stop()
        os._exit(0)

    threading.Thread(target=end).start()


signal.signal(signal.SIGTERM, stop)
threading.Thread(target=sample, daemon=True).start()
election.start()
db: Optional[Any] = None
while True:
    token = election.token
    try:
        if token is not None:
            if db is None or db.closed:
                db = connect(autocommit=False)
            election.run_if_leader(lambda: write(db, token))
    except psycopg.Error:
        # Refused, or the connection is gone: whatever was open is rolled back with it.
        if db is not None:
            db.close()
        db = None
    time.sleep(0.02)
