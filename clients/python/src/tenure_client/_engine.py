"""Standing for an election, leading, stopping: what ``LeaderElection`` is made of.

A thread sends one request after the other; ``_trust.py`` says what an answer means. Another ends
trust when its time has come. Neither runs code of the application: work that blocks, or an event
loop that is starved, does not cost the term. What must stay true:

- ``is_leader`` compares the clock with a moment: nothing has to run for it to become false.
- One term, one reign: the callbacks are called once for each token. After a reign has ended no
  answer revives it; the next one has a higher token, and begins when the work of the one before
  has ended.
- The term is given back last: after the work has ended or its time is over, and after trust was
  given up. Until then it is renewed.
- A child of ``fork`` leads nothing, whatever its parent does.
"""

from __future__ import annotations

import logging
import os
import random
import secrets
import threading
import weakref
from typing import Any, Callable, Optional, Protocol

from ._clock import now
from ._errors import TenureError, told as error_of
from ._settings import Settings
from ._trust import Told, Trust

log = logging.getLogger("tenure_client")

NONE = Trust(0.0)


class Campaign(Protocol):
    """What a transport does for one session, or one row of attempts."""

    def beat(self, quick: bool, patience: float) -> Told:
        """A sign of life, answered with where the election stands."""

    def resign(self, patience: float) -> None:
        """The work has stopped, and nothing is trusted any more."""


class Transport(Protocol):
    def campaign(self) -> Campaign: ...

    def close(self) -> None: ...


class Reign:
    """One term that is led here."""

    def __init__(self, trust: Trust, event: Callable[[], Any]) -> None:
        self.trust = trust
        self.token = trust.term
        self.busy = 0
        #: ``on_become_leader`` has ended.
        self.began = threading.Event()
        #: It is renewed although it is given up: the work is stopping.
        self.draining = False
        self.asked = event()
        self.lost = event()
        self.over = False
        self.stopping = False


class Engine:
    """The threads. ``spawn(work, done)`` runs a callback of the application and calls ``done``."""

    def __init__(
        self,
        settings: Settings,
        transport: Callable[[str], Transport],
        spawn: Callable[[Callable[[], Any], Callable[[Optional[BaseException]], None]], None],
        event: Callable[[], Any],
        signal: Callable[[Any], None],
    ) -> None:
        self.settings = settings
        self.trust = NONE
        self.reign: Optional[Reign] = None
        self.failures = 0
        self.cooldown = 0.0
        #: The highest term that was led here.
        self.last = 0
        self.stopping = True
        self.ended: Optional[Callable[[], None]] = None
        self._transport = transport
        self._spawn = spawn
        self._event = event
        self._signal = signal
        self._done = threading.Event()
        self.changed = threading.Condition(threading.RLock())
        self.thread: Optional[threading.Thread] = None
        _ALL.add(self)

    # What the application asks for.

    def start(self) -> None:
        with self.changed:
            if self.thread is not None:
                return
            self.stopping = False
            self._done = threading.Event()
            self.thread = self._run(self._stand, "campaign")

    def stop(self) -> None:
        """Begins to stop; ``ended`` is called when that is done."""
        with self.changed:
            self.stopping = True
            if self.reign is None:
                self._done.set()
            else:
                self._ask(self.reign, "this process stops", float(self.settings.drain or 0))
            self.changed.notify_all()

    def known(self) -> bool:
        """Whether there is an answer to "do I lead?"."""
        return self.reign is not None or self.failures > 0 or self.stopping

    def enter(self) -> Optional[Reign]:
        """Work begins under the present term; None if it must not."""
        with self.changed:
            reign = self.reign
            if reign is None or reign.stopping or not now() < reign.trust.until:
                return None
            reign.busy += 1
            return reign

    def leave(self, reign: Reign) -> None:
        with self.changed:
            reign.busy -= 1
            self.changed.notify_all()

    # The threads.

    def _run(self, target: Callable[..., None], what: str, *args: Any) -> threading.Thread:
        name = f"tenure-{what}-{self.settings.election}"
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        thread.start()
        return thread

    def _stand(self) -> None:
        try:
            while True:
                with self.changed:
                    if self.stopping:
                        break
                    self._done = threading.Event()
                trust = Trust(float(self.settings.ttl or 0), self.last)
                # Every attempt is another life: a process that was started anew, or forked, is
                # never taken for the one before it, and a resignation that arrives late ends no
                # later term.
                transport = self._transport(f"{self.settings.id}#{secrets.token_hex(4)}")
                try:
                    self._campaign(transport.campaign(), trust, self._done)
                finally:
                    transport.close()
                with self.changed:
                    self.changed.wait_for(lambda: self.stopping, self.cooldown)
                    self.cooldown = 0.0
        finally:
            with self.changed:
                self.thread = None
                self.changed.notify_all()
                if self.ended is not None:
                    self.ended()

    def _campaign(self, campaign: Campaign, trust: Trust, done: threading.Event) -> None:
        """One session: from the first request to the resignation."""
        ttl, drain = float(self.settings.ttl or 0), float(self.settings.drain or 0)
        self.trust = trust
        while self._goes_on(trust, done):
            sent = now()
            quick = self.failures > 0
            patience = ttl / 4 if quick else self.settings.beat + ttl / 4
            try:
                told = self._within(campaign, quick, patience, done)
                if told is None:
                    break
                with self.changed:
                    if done.is_set():
                        break
                    self._heed(trust, sent, told)
                    self.failures = 0
                wait = told.next if self._goes_on(trust, done) else 0.0
            except Exception as error:  # noqa: BLE001: whatever it is, it is tried again
                with self.changed:
                    self._expire(trust)
                    wait = self._failed(error_of(error), trust)
            with self.changed:
                self.changed.wait_for(done.is_set, wait)
        with self.changed:
            reign = self.reign
            if reign is not None:
                self._end(reign, "this process stops")
                self.changed.wait_for(lambda: reign.busy == 0 or done.is_set(), drain)
            self.trust = NONE
            stopping = self.stopping
        try:
            campaign.resign(ttl)
        except Exception as error:  # noqa: BLE001: it ends by its ttl
            self._report(error_of(error))
        if reign is not None:
            with self.changed:
                # Work that goes on under a token that is over: no other term is led beside it.
                if not stopping:
                    self.changed.wait_for(lambda: reign.busy == 0 or self.stopping)
                    self.changed.wait_for(lambda: reign.busy == 0, drain)
                self.reign = None

    def _goes_on(self, trust: Trust, done: threading.Event) -> bool:
        with self.changed:
            draining = self.reign is not None and self.reign.draining
            return not done.is_set() and (not trust.over or draining)

    def _within(
        self, campaign: Campaign, quick: bool, patience: float, done: threading.Event
    ) -> Optional[Told]:
        """One request. It is given up when another could still be answered before trust ends."""
        answers: list[Any] = []

        def ask() -> None:
            try:
                answer: Any = campaign.beat(quick, patience)
            except BaseException as error:  # noqa: BLE001: the thread that waits is told
                answer = error if isinstance(error, Exception) else error_of(error)
            with self.changed:
                answers.append(answer)
                self.changed.notify_all()

        self._run(ask, "request")
        with self.changed:
            self.changed.wait_for(lambda: bool(answers) or done.is_set(), patience)
            if done.is_set():
                return None
            if not answers:
                raise TenureError("the request was given up: there was no answer in time", "late")
        if isinstance(answers[0], BaseException):
            raise answers[0]
        assert isinstance(answers[0], Told)
        return answers[0]

    def _watch(self, reign: Reign) -> None:
        """Ends the reign when its trust has ended. Its waits do not count sleep: it looks again."""
        with self.changed:
            while not reign.over:
                self._expire(reign.trust)
                self.changed.wait(min(max(reign.trust.until - now(), 0.0005), 1.0))

    # Under the lock.

    def _heed(self, trust: Trust, sent: float, told: Told) -> None:
        self._expire(trust)
        event = trust.heed(sent, now(), told)
        if event == "elected":
            self._begin(trust)
        reign = self.reign
        if reign is None:
            if trust.over:
                # It is over before it led: not at once again.
                self.cooldown = self.settings.beat
            return
        if trust.over and told.term != trust.term:
            reign.draining = False
        if event == "lost":
            self._end(reign, told.reason or "the term is over")
        elif event is not None and told.state == "stopping":
            self.cooldown = float(self.settings.ttl or 0)
            drain = float(self.settings.drain or 0)
            drain = drain if told.drain is None else min(told.drain, drain)
            self._ask(reign, told.reason or "it was asked to step down", drain)
        self.changed.notify_all()

    def _begin(self, trust: Trust) -> None:
        reign = self.reign = Reign(trust, self._event)
        self.last = trust.term
        self._run(self._watch, "trust", reign)

        def failed(error: BaseException) -> None:
            self._report(error_of(error))
            with self.changed:
                self.cooldown = float(self.settings.ttl or 0)
                self._ask(reign, "on_become_leader failed", float(self.settings.drain or 0))

        self._call(reign, self.settings.on_become_leader, (), failed, reign.began.set)

    def _expire(self, trust: Trust) -> None:
        reign = self.reign
        if trust.expire(now()) and reign is not None and reign.trust is trust:
            reign.draining = False
            self._end(reign, "trust has ended")

    def _ask(self, reign: Reign, reason: str, drain: float) -> None:
        """The work is to end; then the term is given back."""
        if reign.stopping or reign.over:
            return
        reign.stopping = reign.draining = True
        self._signal(reign.asked)
        self._after(reign, self.settings.on_stopping, (reason,))
        self._run(self._drain, "drain", reign, reason, now() + drain, self._done)

    def _drain(self, reign: Reign, reason: str, until: float, done: threading.Event) -> None:
        with self.changed:
            self.changed.wait_for(lambda: reign.busy == 0 or reign.over, max(0.0, until - now()))
            self._end(reign, reason)
            # Meanwhile the term is renewed: what the recipe stops when it is lost ends here.
            self.changed.wait_for(lambda: reign.busy == 0, max(0.0, until - now()))
            done.set()
            self.changed.notify_all()

    def _end(self, reign: Reign, reason: str) -> None:
        """Trust is over for good."""
        if reign.over:
            return
        reign.over = reign.stopping = True
        reign.trust.end()
        log.debug("%s: term %d is over: %s", self.settings.election, reign.token, reason)
        self._signal(reign.asked)
        self._signal(reign.lost)
        self._after(reign, self.settings.on_lose_leadership, ())
        self.changed.notify_all()

    def _call(
        self,
        reign: Reign,
        callback: Optional[Callable[..., Any]],
        args: tuple[Any, ...],
        failed: Optional[Callable[[BaseException], None]] = None,
        over: Callable[[], None] = lambda: None,
    ) -> None:
        if callback is None:
            over()
            return
        reign.busy += 1

        def ended(error: Optional[BaseException]) -> None:
            if error is not None and failed is not None:
                failed(error)
            elif error is not None:
                self._report(error_of(error))
            over()
            self.leave(reign)

        self._spawn(lambda: callback(*args), ended)

    def _after(
        self, reign: Reign, callback: Optional[Callable[..., Any]], args: tuple[Any, ...]
    ) -> None:
        """Calls back when ``on_become_leader`` has ended, so that what it begins is stopped after it
        began; one that goes on is waited for as long as work may take to stop."""
        if reign.began.is_set():
            self._call(reign, callback, args)
            return
        reign.busy += 1

        def wait() -> None:
            reign.began.wait(float(self.settings.ttl or 0) / 10)
            with self.changed:
                self._call(reign, callback, args)
                self.leave(reign)

        self._run(wait, "callback")

    def _failed(self, error: TenureError, trust: Trust) -> float:
        """How long to wait before the next request: jittered, bounded by what is left of trust."""
        self.failures += 1
        if self.failures == 1 or self.settings.on_error is not None:
            self._report(error)
        if error.code == "no_session":
            trust.end()
            if self.reign is not None:
                self.reign.draining = False
                self._end(self.reign, str(error))
        ttl = float(self.settings.ttl or 0)
        left = trust.until - now()
        most = min(ttl / 8, left / 4) if left > 0 else max(ttl / 2, error.retry_after or 0.0)
        grown = ttl / 100 * (1 << min(self.failures, 16))
        return min(most, grown) * (0.5 + random.random() / 2)

    def _report(self, error: TenureError) -> None:
        if self.settings.on_error is None:
            log.warning("%s: %s", self.settings.election, error)
        else:
            told = self.settings.on_error
            self._spawn(lambda: told(error), lambda _: None)

    def forked(self) -> None:
        """In a child of ``fork``: none of the threads is here."""
        self.trust.until = 0.0
        self.trust = NONE
        self.reign = None
        self.stopping = True
        self.thread = None
        self.changed = threading.Condition(threading.RLock())


_ALL: "weakref.WeakSet[Engine]" = weakref.WeakSet()


def _forked() -> None:
    for engine in list(_ALL):
        engine.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
