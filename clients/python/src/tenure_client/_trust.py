"""Until when a term may be trusted. Pure: every moment is an argument.

- An answer is counted from before its request was sent, and for no longer than the ttl (W1).
- Nothing else extends trust (W2).
- Trust that has ended does not come back: the term is lost, also when an answer that would have
  extended it is found afterwards by a process that was stopped. One such object has one term.
- A term that was led here before is never led again: it is given back, and the next has a higher
  number.
- Answers are ordered by when their requests were sent; an older one changes nothing.

``clients/scripts/trust.json`` has what must hold, and is run by the tests of each language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Optional

State = Literal["waiting", "leading", "stopping", "lost"]
Event = Literal["elected", "stopping", "lost"]


@dataclass
class Told:
    """What an answer says. All spans, and the clock, have one unit: seconds, outside of tests."""

    state: str
    term: Optional[int] = None
    #: For how much longer the term may be trusted, from before the request was sent.
    remaining: float = 0.0
    ttl: Optional[float] = None
    drain: Optional[float] = None
    reason: Optional[str] = None
    #: How long after this answer the next request is due.
    next: float = 0.0


class Trust:
    """The client's half of a session."""

    __slots__ = ("_newest", "_stopping", "after", "over", "term", "ttl", "until")

    def __init__(self, ttl: float, after: int = 0) -> None:
        self.ttl = ttl
        #: The highest term that was led here before.
        self.after = after
        #: Until when; 0 while nothing may be trusted.
        self.until = 0.0
        #: The term; 0 before the first.
        self.term = 0
        self.over = False
        self._newest = float("-inf")
        self._stopping = False

    def heed(self, sent: float, now: float, told: Told) -> Optional[Event]:
        """The answer to the request that was sent at ``sent`` is here at ``now``."""
        if self.expire(now):
            return "lost"
        if self.over or sent < self._newest:
            return None
        if told.state not in ("leading", "stopping"):
            self._newest = now
            return self.end() if told.state == "lost" or self.term else None
        term = told.term
        known = isinstance(term, int) and not isinstance(term, bool) and term >= 1
        if not known or not _number(told.remaining) or not told.remaining >= 0:
            raise ValueError("the answer has no term, or does not say how long it may be trusted")
        assert isinstance(term, int)
        if self.term and term != self.term:
            # An older term is an older answer; a newer one is another reign than the one we serve.
            return None if term < self.term else self.end()
        if term <= self.after:
            return self.end()
        self._newest = sent
        told_ttl = told.ttl if _number(told.ttl) else self.ttl
        assert told_ttl is not None
        until = sent + min(told.remaining, told_ttl, self.ttl)
        if not until > now:
            return None
        elected = not self.term
        self.term = term
        self.until = max(self.until, until)
        if elected:
            return "elected"
        if told.state == "leading" or self._stopping:
            return None
        self._stopping = True
        return "stopping"

    def expire(self, now: float) -> bool:
        """Whether trust has ended by itself, and this is the first to notice."""
        if self.over or not self.term or now < self.until:
            return False
        self.end()
        return True

    def end(self) -> Optional[Event]:
        """The term is over: told so, given up, or expired."""
        led = bool(self.term) and not self.over
        self.until = 0.0
        self.over = True
        return "lost" if led else None


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
