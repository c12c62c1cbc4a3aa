"""One execution environment of a function: `python -I worker.py MODULE HANDLER [FOLDER …]`.

A call a line, an answer a line. With folders its code is in them, and only there.

A call is `{"event": …, "seconds": …, "fault": …}`, its answer `{"answer": …}` or `{"error": …}`. A fault makes the
process die before or after the function's work, or keep its answer to itself until it is killed. It ends when whoever
started it closes the pipe or is gone.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import sys
import threading
import time
import traceback
import uuid
from typing import Any

EXIT_CODE = 86


class Context:
    """What Lambda tells a function of its call."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self.aws_request_id = str(uuid.uuid4())

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._ends - time.monotonic()) * 1000))


def main(module: str, name: str, folders: list[str]) -> None:
    # What the function prints is its log; answers have a way of their own.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(calls,), daemon=True).start()
    sys.path[:0] = folders
    handler = getattr(importlib.import_module(module), name)
    _write(answers, {"ready": True})
    while True:
        _write(answers, _answer(handler, json.loads(calls.get())))


def _read(calls: queue.SimpleQueue[bytes]) -> None:
    """Hand calls on; when there will be none any more, end at once, whatever the function is doing."""
    for line in sys.stdin.buffer:
        calls.put(line)
    os._exit(0)


def _answer(handler: Any, call: dict[str, Any]) -> dict[str, Any]:
    if call["fault"] == "dies before its work":
        os._exit(EXIT_CODE)
    try:
        answer = handler(call["event"], Context(call["seconds"]))
        if call["fault"] == "raises after its work":
            raise RuntimeError("as it was told to")  # noqa: TRY301  like any error of the function's
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}
    if call["fault"] == "dies after its work":
        os._exit(EXIT_CODE)
    while call["fault"] == "is killed at work":  # an answer could be faster than the signal
        time.sleep(60)
    return {"answer": answer}


def _write(answers: Any, value: dict[str, Any]) -> None:
    answers.write(json.dumps(value).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
