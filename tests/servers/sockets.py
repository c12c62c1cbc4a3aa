"""What the system knows of processes and their sockets, from /proc."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

_LISTENING = "0A"


def children(pid: int) -> list[int]:
    """The processes that a process started and that live."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def is_alive(pid: int) -> bool:
    """Whether it runs; one that ended and that nobody has asked about does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def listening_addresses(pid: int) -> set[tuple[str, int]]:
    """Where a process and its descendants wait for connections."""
    own = {inode for each in _family(pid) for inode in _socket_inodes(each)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and fields[9] in own:
                found.add(_address(fields[1]))
    return found


def _family(pid: int) -> list[int]:
    return [pid, *(each for child in children(pid) for each in _family(child))]


def _socket_inodes(pid: int) -> set[str]:
    found = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            found.add(file.readlink().name.removeprefix("socket:[").removesuffix("]"))
    return found


def _address(text: str) -> tuple[str, int]:
    """`0100007F:1F90` as (127.0.0.1, 8080): words of four bytes, each in the machine's own order."""
    address, _, port = text.partition(":")
    words = [bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, b"".join(words)), int(port, 16)
