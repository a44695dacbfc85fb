"""Sessions of a real server: what is promised, while servers and this process fail."""

import asyncio
import os
import pathlib
import pickle
import signal
import threading
import time
import unittest

from tenure_client import LeaderElection, LeaderElectionConfig, TenureError, aio
from tenure_client._clock import now

from common import Serve, Stands, until


class Sessions(unittest.TestCase):
    def test_it_leads_goes_on_leading_drains_and_gives_the_term_back(self) -> None:
        serve = Serve(self)
        first = Stands(self, server=serve.url, id="first").start()
        self.assertTrue(first.election.is_leader, "start() returns when it is known")
        second = Stands(self, server=serve.url, id="second").start()
        self.assertFalse(second.election.is_leader)
        self.assertIsNone(second.election.run_if_leader(lambda: "no"))
        self.assertIsNone(second.election.token)
        self.assertTrue(second.election.lost.is_set())

        token = first.election.token
        lost = first.election.lost
        began = time.monotonic()
        while time.monotonic() - began < 3.0:
            self.assertTrue(first.election.is_leader, "it is renewed")
            self.assertLessEqual(first.election.remaining, 1.5)
            time.sleep(0.02)
        ended = []

        def work() -> None:
            stopping = first.election.stopping
            stopping.wait()
            self.assertTrue(first.election.is_leader, "it is led while the work ends")
            self.assertIsNone(first.election.run_if_leader(lambda: "new"), "no new work")
            time.sleep(0.3)
            self.assertTrue(first.election.is_leader and not second.election.is_leader)
            ended.append(True)

        worker = threading.Thread(target=first.election.run_if_leader, args=(work,))
        worker.start()
        until("the work to begin", lambda: first.election._engine.reign.busy > 0)
        first.election.stop()
        self.assertTrue(ended and lost.is_set() and not first.election.is_leader)
        worker.join()
        second.leads()
        assert token is not None and second.election.token is not None
        self.assertGreater(second.election.token, token)
        told = [f"became {token}", "stopping: this process stops", "lost"]
        until("the callbacks", lambda: len(first.told) == 3)
        self.assertEqual((first.told, first.errors), (told, []))

    def test_what_stops_its_work_when_it_is_lost_is_waited_for(self) -> None:
        serve = Serve(self)
        stopped = []

        def stop_it() -> None:
            # Longer than the ttl: it is renewed meanwhile.
            time.sleep(2.2)
            stopped.append(True)

        first = Stands(self, server=serve.url, id="first", drain=4.0, on_lose_leadership=stop_it)
        first.start()
        began_after = []
        second = Stands(
            self, server=serve.url, id="second", on_become_leader=lambda: began_after.append(bool(stopped))
        ).start()
        first.election.stop()
        second.leads()
        until("the callback", lambda: began_after)
        self.assertEqual(began_after, [True])

    def test_a_server_that_is_killed_and_comes_back(self) -> None:
        serve = Serve(self)
        one = Stands(self, server=serve.url).start()
        token, lost = one.election.token, one.election.lost
        serve.kill()
        remaining, began = one.election.remaining, time.monotonic()
        self.assertTrue(lost.wait(10))
        self.assertLess(time.monotonic() - began, remaining + 1.0, "by a timer, not by an answer")
        self.assertFalse(one.election.is_leader)
        serve.up()
        one.leads()
        assert token is not None and one.election.token is not None
        self.assertGreater(one.election.token, token)
        self.assertTrue(all(error.code != "failed" for error in one.errors), one.errors)

    def test_a_server_that_was_started_again_does_not_know_the_session(self) -> None:
        serve = Serve(self)
        one = Stands(self, server=serve.url, ttl=20.0, heartbeat_interval=0.5).start()
        lost = one.election.lost
        serve.kill()
        serve.up()
        self.assertTrue(lost.wait(10), "it would have trusted for twenty seconds")
        self.assertFalse(one.election.is_leader)

    def test_a_server_that_is_stopped(self) -> None:
        serve = Serve(self)
        one = Stands(self, server=serve.url).start()
        token, lost = one.election.token, one.election.lost
        serve.signal(signal.SIGSTOP)
        remaining, began = one.election.remaining, time.monotonic()
        self.assertTrue(lost.wait(10))
        self.assertLess(time.monotonic() - began, remaining + 1.0)
        time.sleep(2.0)
        serve.signal(signal.SIGCONT)
        one.leads()
        assert token is not None and one.election.token is not None
        self.assertGreater(one.election.token, token)

    def test_a_callback_that_blocks_does_not_cost_the_term(self) -> None:
        serve = Serve(self)
        release = threading.Event()
        one = Stands(self, server=serve.url, on_become_leader=release.wait).start()
        lost = one.election.lost
        time.sleep(2.5)
        self.assertTrue(one.election.is_leader and not lost.is_set())
        release.set()

    def test_a_callback_that_fails_gives_the_term_up(self) -> None:
        serve = Serve(self)

        def failing() -> None:
            raise RuntimeError("no database")

        one = Stands(self, server=serve.url, on_become_leader=failing).start()
        until("the end", lambda: "lost" in one.told)
        self.assertEqual(one.told[0], "stopping: on_become_leader failed")
        until("the error", lambda: one.errors)
        self.assertEqual(str(one.errors[0]), "no database")

    def test_an_operator_asks_for_a_step_down(self) -> None:
        serve = Serve(self)
        first = Stands(self, server=serve.url, id="first").start()
        second = Stands(self, server=serve.url, id="second").start()
        serve.post("/v1/elections/jobs/step-down", {"reason": "deploying"})
        second.leads()
        self.assertFalse(first.election.is_leader)
        self.assertRegex(first.told[1], "^stopping: .*deploying")

    def test_a_wrong_access_token_is_told_never_shown_and_put_right(self) -> None:
        serve = Serve(self)
        tokens = pathlib.Path(serve.dir, "tokens")
        tokens.write_text("right-secret\n")
        serve.args = ("--candidate-tokens", str(tokens))
        serve.kill()
        serve.up()
        secret = ["wrong-secret"]
        config = LeaderElectionConfig(server=serve.url, access_token="wrong-secret")
        self.assertNotIn("wrong-secret", repr(config))
        one = Stands(self, server=serve.url, access_token=lambda: secret[0]).start()
        until("the refusal", lambda: one.errors)
        self.assertEqual((one.errors[0].code, one.errors[0].may_have_applied), ("unauthorized", False))
        self.assertNotIn("wrong-secret", repr(one.errors) + str(one.errors[0]))
        secret[0] = "right-secret"
        one.leads()

    def test_over_a_unix_socket(self) -> None:
        one = Stands(self, server=Serve(self, unix=True).url).start()
        one.leads()
        time.sleep(1.5)
        self.assertTrue(one.election.is_leader)
        one.election.stop()
        self.assertEqual(one.errors, [])

    def test_a_child_of_fork_leads_nothing(self) -> None:
        one = Stands(self, server=Serve(self).url).start()
        self.assertTrue(one.election.is_leader)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            seen = (one.election.is_leader, one.election.token, one.election.run_if_leader(lambda: 1))
            one.election.stop()
            os.write(write, pickle.dumps(seen))
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(pickle.loads(os.read(read, 1000)), (False, None, None))
        os.close(read)
        os.close(write)
        self.assertTrue(one.election.is_leader, "the parent goes on")

    def test_what_cannot_be_is_refused_when_it_is_made(self) -> None:
        for config, why in [
            ({}, r"election \(or service_name\)"),
            ({"election": "x" * 181}, "180 bytes"),
            ({"election": "jobs", "ttl": 0.01}, "ttl must be"),
            ({"election": "jobs", "ttl": float("nan")}, "ttl must be"),
            ({"election": "jobs", "ttl": 9, "heartbeat_interval": 3.001}, "a third of the ttl"),
            ({"election": "jobs", "server": "ftp://x"}, "server must be"),
            ({"election": "jobs", "server": "nothing"}, "server must be"),
            ({"election": "jobs", "server": "http://[x"}, "server must be"),
        ]:
            with self.subTest(config), self.assertRaisesRegex(ValueError, why):
                LeaderElection(**config)
        LeaderElection(election="jobs", heartbeat_timeout=15, heartbeat_interval=5)
        with self.assertRaises(ValueError) as refused:
            LeaderElection(election="jobs", server="http://user:secret-word@x")
        self.assertNotIn("secret-word", str(refused.exception))
        with self.assertRaises(TypeError):
            LeaderElection(object(), election="jobs")

    def test_the_clock_counts_sleep_on_linux(self) -> None:
        self.assertAlmostEqual(now(), time.clock_gettime(time.CLOCK_BOOTTIME), delta=1.0)


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def test_it_leads_and_a_starved_loop_does_not_cost_the_term(self) -> None:
        serve = await asyncio.to_thread(Serve, self)
        told: list[str] = []

        async def became() -> None:
            await asyncio.sleep(0)
            told.append(f"became {election.token}")

        election = aio.LeaderElection(
            election="jobs", server=serve.url, ttl=1.5, on_become_leader=became,
            on_lose_leadership=lambda: told.append("lost"), on_stopping=told.append,
        )
        await election.start()
        self.assertTrue(election.is_leader)
        token, lost = election.token, election.lost
        time.sleep(2.0)
        self.assertTrue(election.is_leader and not lost.is_set())
        self.assertEqual(election.token, token)
        work = asyncio.create_task(election.run_if_leader(lambda: asyncio.sleep(0.3, "done")))
        await asyncio.sleep(0)
        await election.stop()
        self.assertEqual(await work, "done")
        self.assertTrue(lost.is_set() and not election.is_leader)
        self.assertEqual(told, [f"became {token}", "this process stops", "lost"])
        self.assertIsNone(await election.run_if_leader(lambda: "no"))
        async with election:
            until("another term", lambda: election.is_leader)
            self.assertNotEqual(election.token, token)

    async def test_the_loss_is_told_on_the_loop(self) -> None:
        serve = await asyncio.to_thread(Serve, self)
        election = aio.LeaderElection(election="jobs", server=serve.url, ttl=1.5)
        await election.start()
        lost = election.lost
        serve.kill()
        await asyncio.wait_for(lost.wait(), 10)
        self.assertFalse(election.is_leader)
        await election.stop()

    async def test_a_loop_that_is_closed_ends_nothing_in_an_error(self) -> None:
        errors: list[object] = []
        election = aio.LeaderElection(election="jobs", server="http://127.0.0.1:9", ttl=0.5)
        threading.excepthook, before = errors.append, threading.excepthook
        try:
            await asyncio.to_thread(lambda: asyncio.run(election.start()))
            await asyncio.sleep(1.0)
        finally:
            threading.excepthook = before
        self.assertEqual(errors, [])
        election._engine.stop()


class Errors(unittest.TestCase):
    def test_a_sync_election_with_an_async_client_says_what_to_use(self) -> None:
        async def query(sql: str, params: object) -> list[object]:
            return []

        one = Stands(self, query)
        one.start()
        until("the error", lambda: one.errors)
        self.assertIn("tenure_client.aio", str(one.errors[0]))
        self.assertIsInstance(one.errors[0], TenureError)


if __name__ == "__main__":
    unittest.main()
