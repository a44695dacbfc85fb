"""Servers that answer late, wrong, or not at all. Each test is one interleaving."""

import threading
import time
import unittest
from typing import Any

from common import OVER, WAITING, Fake, Stands, is_begin, is_resign, later, leading, until


class Hostile(unittest.TestCase):
    def test_an_answer_with_more_than_the_ttl_is_trusted_for_the_ttl(self) -> None:
        def answer(path: str, n: int) -> Any:
            if n == 1:
                return leading(remaining_ms=1e12, ttl_ms=1e12)
            return OVER if is_resign(path) else later(5, None)

        began = time.monotonic()
        one = Stands(self, server=Fake(self, answer).url).start()
        self.assertLessEqual(one.election.remaining, 1.5)
        self.assertTrue(one.election.lost.wait(10))
        self.assertLess(time.monotonic() - began, 2.5)

    def test_the_timer_ends_trust_while_a_request_is_open_that_is_still_waited_for(self) -> None:
        # The ttl is long, so that the request is waited for long; what is granted is short.
        def answer(path: str, n: int) -> Any:
            if n == 1:
                return leading(remaining_ms=300, ttl_ms=40_000)
            return OVER if is_resign(path) else later(8, None)

        done: list[str] = []

        def begin() -> None:
            time.sleep(0.8)
            done.append("began")

        one = Stands(
            self, server=Fake(self, answer).url, ttl=40.0, on_become_leader=begin,
            on_lose_leadership=lambda: done.append("stopped"),
        ).start()
        self.assertTrue(one.election.lost.wait(5))
        self.assertEqual(one.errors, [], "nothing was given up yet")
        until("the callbacks", lambda: len(done) == 2)
        self.assertEqual(done, ["began", "stopped"], "it was lost while it began")

    def test_a_slow_answer_is_counted_from_before_its_request_was_sent(self) -> None:
        def answer(path: str, n: int) -> Any:
            if n == 1:
                return later(0.4, leading())
            return OVER if is_resign(path) else later(5, None)

        began = time.monotonic()
        one = Stands(self, server=Fake(self, answer).url).start()
        until("the end", lambda: not one.election.is_leader and one.told)
        passed = time.monotonic() - began
        self.assertTrue(0.39 < passed < 1.7, passed)

    def test_a_late_answer_to_a_beat_after_stop_revives_nothing(self) -> None:
        beats: list[int] = []

        def answer(path: str, n: int) -> Any:
            if is_begin(path):
                return leading()
            if is_resign(path):
                return OVER
            beats.append(n)
            return later(0.3, leading())

        fake = Fake(self, answer)
        one = Stands(self, server=fake.url).start()
        until("a beat in flight", lambda: beats)
        one.election.stop()
        sent = len(fake.asked)
        time.sleep(0.6)
        self.assertFalse(one.election.is_leader)
        self.assertEqual(len(fake.asked), sent, "nothing is asked after stop()")
        self.assertTrue(is_resign(fake.asked[-1][0]))
        self.assertEqual(one.told, ["became 7", "stopping: this process stops", "lost"])

    def test_a_beat_that_is_not_answered_is_given_up_and_another_keeps_the_term(self) -> None:
        beats: list[int] = []

        def answer(path: str, n: int) -> Any:
            if is_begin(path):
                return leading()
            if is_resign(path):
                return OVER
            beats.append(n)
            # The first hangs, and is answered "lost" when it is of no interest any more.
            return later(2.3, OVER) if len(beats) == 1 else later(0.05, leading())

        one = Stands(self, server=Fake(self, answer).url).start()
        time.sleep(2.8)
        self.assertTrue(one.election.is_leader)
        self.assertEqual(one.told, ["became 7"])
        self.assertIn(one.errors[0].code, ("late", "unreachable"))

    def test_a_session_that_is_not_known_is_lost_and_begun_again(self) -> None:
        terms = [7]

        def answer(path: str, n: int) -> Any:
            if is_begin(path):
                return leading(term=terms[0])
            if is_resign(path):
                return OVER
            if terms[0] > 7:
                return later(0.1, leading(term=8))
            terms[0] = 8
            return 410, b'{"code":"no_session","title":"there is no such session","status":410}'

        fake = Fake(self, answer)
        one = Stands(self, server=fake.url).start()
        until("the second term", lambda: len(one.told) == 3)
        self.assertEqual(one.told, ["became 7", "lost", "became 8"])
        keys = [headers["Idempotency-Key"] for path, _, headers in fake.asked if is_begin(path)]
        self.assertEqual(len(set(keys)), 2)

    def test_the_same_session_is_begun_again_when_the_answer_was_lost(self) -> None:
        def answer(path: str, n: int) -> Any:
            if n == 1:
                return None
            return leading() if is_begin(path) else OVER if is_resign(path) else later(0.1, leading())

        fake = Fake(self, answer)
        Stands(self, server=fake.url).start().leads()
        keys = [asked[2]["Idempotency-Key"] for asked in fake.asked[:2]]
        self.assertEqual(keys[0], keys[1])

    def test_another_term_in_an_answer_is_another_reign(self) -> None:
        terms = [7]

        def answer(path: str, n: int) -> Any:
            if is_resign(path):
                return OVER
            if not is_begin(path):
                time.sleep(0.1)
            term, terms[0] = terms[0], 9
            return leading(term=term)

        one = Stands(self, server=Fake(self, answer).url, drain=0.1).start()
        reign = one.election._engine.enter()
        assert reign is not None
        until("the loss", lambda: "lost" in one.told)
        time.sleep(0.5)
        self.assertFalse(one.election.is_leader, "no other term beside work of the first")
        one.election._engine.leave(reign)
        until("the next term", lambda: one.election.token == 9)

    def test_errors_and_nonsense_extend_nothing_end_nothing_and_are_retried(self) -> None:
        away = b'{"code":"store_away","detail":"the store is away","may_have_applied":true}'
        bad = [
            (503, away),
            (200, b"<html>not what was asked for</html>"),
            (200, b"[1]"),
            leading(term="seven"),
            (302, b""),
            None,
        ]
        beats: list[int] = []

        def answer(path: str, n: int) -> Any:
            if is_begin(path):
                return leading()
            if is_resign(path):
                return OVER
            time.sleep(0.06)
            beats.append(n)
            return leading() if len(beats) % 2 else bad[len(beats) // 2 % len(bad)]

        one = Stands(self, server=Fake(self, answer).url, access_token="a-secret").start()
        until("all of them", lambda: len(one.errors) >= len(bad))
        self.assertTrue(one.election.is_leader)
        self.assertEqual(one.told, ["became 7"])
        away_error = next(error for error in one.errors if error.code == "store_away")
        self.assertEqual((str(away_error), away_error.may_have_applied), ("the store is away", True))
        self.assertNotIn("a-secret", repr(one.errors))

    def test_a_server_that_never_waits_is_not_asked_without_end(self) -> None:
        fake = Fake(self, lambda path, n: OVER if is_resign(path) else WAITING)
        Stands(self, server=fake.url).start()
        time.sleep(1.0)
        self.assertTrue(3 < len(fake.asked) < 40, len(fake.asked))

    def test_a_server_that_is_away_is_asked_less_often_and_stop_returns(self) -> None:
        one = Stands(self, server="http://127.0.0.1:9").start()
        time.sleep(1.5)
        self.assertTrue(2 < len(one.errors) < 12, one.errors)
        self.assertEqual(one.errors[0].code, "unreachable")
        one.election.stop()

    def test_it_stops_and_starts_again(self) -> None:
        terms = [0]

        def answer(path: str, n: int) -> Any:
            if is_begin(path):
                terms[0] += 1
                return leading(term=terms[0])
            return OVER if is_resign(path) else later(0.05, leading(term=terms[0]))

        one = Stands(self, server=Fake(self, answer).url)
        for token in (1, 2):
            one.election.start()
            until("a leader", lambda: one.election.token == token)
            one.election.stop()
        self.assertEqual([line for line in one.told if "became" in line], ["became 1", "became 2"])

    def test_a_term_that_was_lost_and_could_not_be_given_back_is_not_led_again(self) -> None:
        # A store that keeps the term for us as long as it is not given back.
        store: dict[str, Any] = {"term": 7, "refuses": 2}
        hangs, goes_on = threading.Event(), threading.Event()

        def query(sql: str, params: Any) -> Any:
            if "try_lead" in sql:
                if hangs.is_set():
                    goes_on.wait()
                return [(True, store["term"], 1500.0, False)]
            store["refuses"] -= 1
            if store["refuses"] >= 0:
                raise RuntimeError("the store is away")
            store["term"] += 1
            return [(True,)]

        one = Stands(self, query).start()
        hangs.set()
        until("the loss", lambda: "lost" in one.told)
        hangs.clear()
        goes_on.set()
        until("the next", lambda: len(one.told) > 2)
        self.assertEqual(one.told, ["became 7", "lost", "became 8"])

    def test_what_is_begun_slowly_is_stopped_after_it_began(self) -> None:
        done: list[str] = []

        def query(sql: str, params: Any) -> Any:
            return [(True, 1, 1500.0, True) if "try_lead" in sql else (True,)]

        def begin() -> None:
            time.sleep(0.06)
            done.append("began")

        one = Stands(self, query, on_become_leader=begin, on_lose_leadership=lambda: done.append("stopped"))
        one.start()
        one.election.stop()
        self.assertEqual(done, ["began", "stopped"])

        running = threading.Event()
        running.set()

        def work() -> None:
            until("the end", lambda: not running.is_set())

        long = Stands(self, query, on_become_leader=work, on_lose_leadership=running.clear, drain=0.2)
        long.start()
        long.election.stop()
        until("the end", lambda: not running.is_set())

    def test_a_resignation_that_arrives_late_names_no_later_attempt(self) -> None:
        # One that is stuck in a connection is carried out when others have been answered.
        led: list[str] = []
        resigned: list[str] = []

        def query(sql: str, params: Any) -> Any:
            if "step_down" in sql:
                resigned.append(params[2])
                return [{"given": True}]
            led.append(params[2])
            # Each term is short: it is lost, given back, and another is won.
            return [{"leads": len(led) % 2 == 1, "term": len(led), "remaining": 900.0, "asked": False}]

        one = Stands(self, query=query, ttl=1.0).start()
        until("two attempts", lambda: len(resigned) == 2 and len(led) > 3)
        one.election.stop()
        self.assertEqual(len(set(resigned)), len(resigned), "each attempt has an id of its own")
        self.assertTrue(set(resigned) <= set(led))


if __name__ == "__main__":
    unittest.main()
