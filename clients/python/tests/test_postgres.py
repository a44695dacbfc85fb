"""PostgreSQL's functions, by each kind of client, on a real server; and the recipe's own shape."""

import asyncio
import itertools
import os
import threading
import time
import unittest
from typing import Any, Callable

import asyncpg
import psycopg
from psycopg.rows import dict_row

from tenure_client import aio
from tenure_client._postgres import query_of
from tenure_client.aio import LeaderElection, LeaderElectionConfig

from common import Stands, environment, until

URL = environment("TENURE_TEST_POSTGRES_URL")
FRESH = itertools.count()


def space() -> str:
    return f"py-{os.getpid()}-{next(FRESH)}"


class Sync(unittest.TestCase):
    def setUp(self) -> None:
        self.db = self.connect()

    def connect(self, **more: Any) -> Any:
        connection = psycopg.connect(URL, autocommit=True, **more)
        self.addCleanup(connection.close)
        return connection

    def test_psycopg_leads_is_renewed_and_hands_over(self) -> None:
        for db in (self.db, self.connect(row_factory=dict_row)):
            namespace = space()
            first = Stands(self, db, namespace=namespace, id="first").start()
            self.assertTrue(first.election.is_leader)
            second = Stands(self, self.connect(), namespace=namespace, id="second").start()
            began = time.monotonic()
            while time.monotonic() - began < 2.0:
                self.assertTrue(first.election.is_leader and not second.election.is_leader)
                self.assertLessEqual(first.election.remaining, 1.35, "less the margin")
                time.sleep(0.02)
            token = first.election.token
            assert token is not None
            self.db.execute("SELECT tenure.fence(%s, 'jobs', %s)", (namespace, token))
            first.election.stop()
            second.leads()
            self.assertGreater(second.election.token or 0, token)
            with self.assertRaises(psycopg.Error) as refused:
                self.db.execute("SELECT tenure.fence(%s, 'jobs', %s)", (namespace, token))
            self.assertEqual(refused.exception.sqlstate, "TN001")
            second.election.stop()
            self.assertEqual((first.errors, second.errors), ([], []))
            self.assertEqual(self.members(namespace), [])

    def members(self, namespace: str) -> list[str]:
        rows = self.db.execute("SELECT id FROM tenure.members WHERE ns = %s", (namespace,))
        return [id for (id, *_) in rows.fetchall()]

    def test_two_processes_of_one_id_are_two(self) -> None:
        namespace = space()
        both = [Stands(self, self.connect(), namespace=namespace, id="w") for _ in range(2)]
        for one in both:
            one.start()
        until("a leader", lambda: any(one.election.is_leader for one in both))
        time.sleep(1.7)
        self.assertFalse(all(one.election.is_leader for one in both))

    def test_a_database_that_is_away(self) -> None:
        namespace = space()
        away = threading.Event()
        back = threading.Event()

        def query(sql: str, params: Any) -> Any:
            if away.is_set():
                back.wait()
            return query_of(self.db)(sql, params)

        one = Stands(self, query, namespace=namespace).start()
        token, lost = one.election.token, one.election.lost
        away.set()
        remaining, began = one.election.remaining, time.monotonic()
        self.assertTrue(lost.wait(10))
        self.assertLess(time.monotonic() - began, remaining + 1.0)
        away.clear()
        back.set()
        one.leads()
        self.assertGreater(one.election.token or 0, token or 0)

    def test_a_call_that_was_given_up_is_waited_for_before_the_election_is_left(self) -> None:
        namespace = space()
        slow = threading.Event()

        def query(sql: str, params: Any) -> Any:
            if slow.is_set() and "try_lead" in sql:
                time.sleep(0.6)
            return query_of(self.db)(sql, params)

        one = Stands(self, query, namespace=namespace).start()
        slow.set()
        time.sleep(0.4)
        one.election.stop()
        time.sleep(0.8)
        self.assertEqual(self.members(namespace), [], "a late call stood again")

    def test_an_operator_asks_for_a_step_down(self) -> None:
        namespace = space()
        first = Stands(self, self.connect(), namespace=namespace, id="first").start()
        second = Stands(self, self.connect(), namespace=namespace, id="second").start()
        self.db.execute("SELECT tenure.ask_step_down(%s, 'jobs')", (namespace,))
        second.leads()
        self.assertEqual(first.told[1], "stopping: an operator asked for a step-down")

    def test_a_connection_in_a_transaction_is_refused(self) -> None:
        connection = psycopg.connect(URL)
        self.addCleanup(connection.close)
        with self.assertRaisesRegex(ValueError, "autocommit"):
            Stands(self, connection)

    def test_an_answer_that_says_nothing_is_an_error_and_elects_no_one(self) -> None:
        answers: list[Any] = [[], [(True, 1, None, False)], [(True, None, 900.0, False)]]
        for rows in answers:
            one = Stands(self, lambda sql, params, rows=rows: rows).start()
            until("the error", lambda: one.errors)
            self.assertFalse(one.election.is_leader, rows)


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def leads_and_hands_over(self, make: Callable[[], Any]) -> None:
        namespace = space()
        first = aio.LeaderElection(await make(), namespace=namespace, election="jobs", ttl=1.5)
        second = aio.LeaderElection(await make(), namespace=namespace, election="jobs", ttl=1.5)
        await first.start()
        self.assertTrue(first.is_leader)
        await second.start()
        token = first.token
        await asyncio.sleep(2.0)
        self.assertTrue(first.is_leader and first.token == token and not second.is_leader)
        await first.stop()
        for _ in range(1000):
            if second.is_leader:
                break
            await asyncio.sleep(0.01)
        self.assertGreater(second.token or 0, token or 0)
        await second.stop()

    async def test_asyncpg(self) -> None:
        async def make() -> Any:
            pool = await asyncpg.create_pool(URL, min_size=1, max_size=2)
            self.addAsyncCleanup(pool.close)
            return pool

        await self.leads_and_hands_over(make)

    async def test_psycopg(self) -> None:
        async def make() -> Any:
            connection = await psycopg.AsyncConnection.connect(URL, autocommit=True)
            self.addAsyncCleanup(connection.close)
            return connection

        await self.leads_and_hands_over(make)

    async def test_the_recipe(self) -> None:
        """The recipe's own shape: only the import is another."""

        class Database:
            def __init__(self, pool: Any) -> None:
                self.pool = pool

            async def execute(self, sql: str, *args: Any) -> Any:
                return await self.pool.fetch(sql, *args)

        pool = await asyncpg.create_pool(URL, min_size=1, max_size=2)
        self.addAsyncCleanup(pool.close)
        db = Database(pool)
        running = []

        async def start_cron_jobs() -> None:
            running.append("cron")

        async def stop_cron_jobs() -> None:
            running.clear()

        config = LeaderElectionConfig(
            service_name=f"report-{space()}",
            candidate_id=f"worker-{os.getpid()}",
            heartbeat_interval=1.0,
            heartbeat_timeout=3,
            on_become_leader=start_cron_jobs,
            on_lose_leadership=stop_cron_jobs,
        )
        election = LeaderElection(db, config)
        await election.start()
        self.assertTrue(election.is_leader)
        await asyncio.sleep(0)
        self.assertEqual(running, ["cron"])
        await election.stop()
        self.assertFalse(election.is_leader)
        self.assertEqual(running, [])


if __name__ == "__main__":
    unittest.main()
