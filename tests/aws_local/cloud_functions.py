"""Lambda that runs code: a function's handler in processes of its own, answered and failed as AWS does it.

What differs: an event source mapping of moto delivers nothing, because it knows no partial failures (cloud_mappings
does it, if the cloud is to deliver), and a function that has failed an asynchronous call is tried again after a second.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moto.awslambda.models import LambdaBackend
from moto.sqs.models import Queue
from tests.aws_local.cloud_packages import code_of, entry
from tests.aws_local.cloud_place import Place
from tests.aws_local.faults import Faults
from tests.aws_local.function import Function, FunctionError

_ASYNCHRONOUS_TRIES: Final = 3
_PAUSE_SECONDS: Final = 1.0
_delete_function: Final = LambdaBackend.delete_function
_UNHANDLED: Final = {"x-amz-function-error": "Unhandled"}


@dataclass
class Functions:
    """The functions that were called so far; each has at most `at_a_time` processes, other calls wait."""

    place: Place
    at_a_time: int
    _ready: dict[str, tuple[object, Function]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_closed: bool = False

    def install(self) -> None:
        """Calls of moto's Lambda come here from now on."""
        functions = self

        def invoke(
            self: LambdaBackend,
            function_name: str,
            qualifier: str | None,
            body: Any,
            headers: Any,
            response_headers: Any,
        ) -> bytes:
            called = self.get_function(function_name, qualifier)
            return functions.invoke(called, body, headers, response_headers)

        def delete_function(self: LambdaBackend, name: str, qualifier: str | None = None) -> None:
            arn = self.get_function(name, qualifier).function_arn
            _delete_function(self, name, qualifier)
            functions.forget(arn)

        LambdaBackend.invoke = invoke
        LambdaBackend.delete_function = delete_function
        # Else a queue would take its messages out and count that as a receive, each time that one is sent.
        Queue.lambda_event_source_mappings = property(lambda _: {}, lambda *_: None)

    def invoke(self, called: Any, body: Any, headers: Mapping[str, str], told: dict[str, str]) -> bytes:
        """The answer's bytes; `told` gets the header that says that they are an error."""
        kind = headers.get("X-Amz-Invocation-Type", "RequestResponse")
        event = json.loads(body) if body else {}
        if kind == "DryRun":
            return b""
        if kind == "Event":
            threading.Thread(target=self._call_until_done, args=(called, event), daemon=True).start()
            return b""
        answer = self._call(called, event)
        if "answer" in answer:
            return json.dumps(answer["answer"]).encode()
        told.update(_UNHANDLED)
        return json.dumps(answer).encode()

    def forget(self, arn: str) -> None:
        """End the processes of a function that is no more."""
        with self._lock:
            _, function = self._ready.pop(arn, (None, None))
        if function is not None:
            function.close()

    def close(self) -> None:
        """No process of a function is there any more when this returns."""
        with self._lock:
            self._is_closed = True
            ready, self._ready = self._ready, {}
        for _, function in ready.values():
            function.close()

    def _call_until_done(self, called: Any, event: Any) -> None:
        for _ in range(_ASYNCHRONOUS_TRIES):
            if "answer" in self._call(called, event):
                return
            time.sleep(_PAUSE_SECONDS)

    def _call(self, called: Any, event: Any) -> dict[str, Any]:
        """`answer`, or the error's type and message."""
        try:
            function = self._function(called)
            with function.environment() as environment:
                begun = time.monotonic()
                found = environment.call(event, function.seconds, None, None)
                took = time.monotonic() - begun
        except (AssertionError, FunctionError, OSError) as error:
            found, took = {"error": f"Runtime.ImportModuleError: {error}"}, 0.0
        name = called.function_name
        if "answer" in found:
            self.place.say(f"{name}: answered in {took:.2f} s")
            return found
        failure = _failure(found, took, float(called.timeout))
        self.place.say(f"{name}: {failure['errorType']}: {failure['errorMessage'][-300:]!r}")
        return failure

    def _function(self, called: Any) -> Function:
        """The processes of what is deployed now; those of older code or other settings are ended."""
        environ = self._environ(called)
        deployed = (called.code_sha_256, entry(called), tuple(environ.items()), called.timeout)
        with self._lock:
            if self._is_closed:
                raise FunctionError("the cloud is closing")
            known, function = self._ready.get(called.function_arn, (None, None))
            if function is not None and known == deployed:
                return function
            if function is not None:
                function.close()
            function = self._made(called, environ)
            self._ready[called.function_arn] = (deployed, function)
            return function

    def _made(self, called: Any, environ: dict[str, str]) -> Function:
        name = called.function_name
        module, code = code_of(called, self.place.subfolder("packages", name), self.place.say)
        log = self.place.subfolder("functions") / f"{name}.log"
        return Function(module, environ, log, Faults(0), self.at_a_time, float(called.timeout), code)

    def _environ(self, called: Any) -> dict[str, str]:
        own = {
            "AWS_LAMBDA_FUNCTION_NAME": called.function_name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(called.memory_size),
            "AWS_REGION": called.region,
            "AWS_DEFAULT_REGION": called.region,
        }
        return {**self.place.environ(), **own, **called.environment_vars}


def _failure(found: dict[str, Any], took: float, seconds: float) -> dict[str, str]:
    """What AWS says of a call without an answer."""
    if "error" in found:
        kind, _, message = found["error"].partition(": ")
        return {"errorType": kind, "errorMessage": message}
    if took >= seconds:
        return {"errorType": "Sandbox.Timedout", "errorMessage": f"Error: Task timed out after {seconds:.2f} seconds"}
    return {"errorType": "Runtime.ExitError", "errorMessage": "Error: Runtime exited without providing a reason"}
