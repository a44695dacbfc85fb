"""What went wrong: what happened, to what, what to do, and whether it may have been done."""

from __future__ import annotations

import json
from typing import Any, Optional


class TenureError(Exception):
    """An error of a request."""

    #: What to do.
    remedy: Optional[str] = None
    #: Whether the request may have been carried out all the same.
    may_have_applied: bool = True
    #: The newest term that is known, where a write was refused.
    newest_term: Optional[int] = None
    #: How many seconds to wait before it is tried again.
    retry_after: Optional[float] = None

    def __init__(self, message: str, code: str = "failed") -> None:
        super().__init__(message)
        #: That of the server, or ``late``, ``unreachable``, ``failed``.
        self.code = code


def told(error: BaseException) -> TenureError:
    """Any error as one of ours."""
    if isinstance(error, TenureError):
        return error
    ours = TenureError(str(error) or type(error).__name__)
    ours.__cause__ = error
    return ours


def problem(status: int, body: bytes, retry_after: Optional[str]) -> TenureError:
    """An answer of the server that is not what was asked for (``application/problem+json``)."""
    said: dict[str, Any] = {}
    try:
        parsed = json.loads(body)
        if isinstance(parsed, dict):
            said = parsed
    except ValueError:
        pass
    what = said.get("detail") or said.get("title") or f"the server answers with status {status}"
    remedy = said.get("remedy")
    text = f"{what}; {remedy}" if isinstance(remedy, str) else str(what)
    error = TenureError(text, str(said.get("code", f"status_{status}")))
    error.remedy = remedy if isinstance(remedy, str) else None
    error.may_have_applied = said.get("may_have_applied") is not False
    error.newest_term = said.get("newest_term")
    try:
        error.retry_after = float(retry_after) if retry_after else None
    except ValueError:
        pass
    return error
