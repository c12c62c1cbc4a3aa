"""What goes wrong in a call to AWS, as one of our errors: passing or not, and with the name of what was called."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lean_ops.aws.faults import is_passing, told
from lean_ops.model.errors import TerminalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def calling(where: str) -> Iterator[None]:
    """A block that calls a service; TransientError if the same call may succeed later, TerminalError if not."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        if is_passing(error):
            raise TransientError("AWS did not answer as it should", where=where, found=told(error)) from error
        remedy = "Look at the name, the permissions and the region."
        raise TerminalError("AWS refused a call", where=where, found=told(error), remedy=remedy) from error
