"""How far an emulation is: a small file in the home, so that phases can be played one by one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lean_ops.ledger.oracle import FATES_FILE
from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.operate.emulation import DEFAULT_SIZE, Emulation, Phase

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = "emulation"
_FILE: Final = "emulation.json"
_WORDS: Final = (*Phase, "full", "verify")


@dataclass
class EmulationLog:
    """The emulation of a home, the phases that are over, and the one that has begun and not ended.

    A phase that was interrupted is played again from its start: what it had sent comes a second time, as retries do,
    so from then on there may be more copies than the oracle tells of.
    """

    folder: Path
    emulation: Emulation
    done: list[Phase]
    begun: Phase | None = None
    redelivered: bool = False
    is_replay: bool = False

    @property
    def has_begun(self) -> bool:
        """Whether anything was ever played here."""
        return bool(self.done or self.begun)

    @property
    def fates(self) -> Path:
        """What must have become of all bodies up to now."""
        return self.folder / FATES_FILE

    def wanted(self, word: str) -> list[Phase]:
        """The phases to play for a word of the command line; WrongUseError if it is not their turn."""
        if word not in _WORDS:
            raise WrongUseError("no such phase", found=repr(word), expected=f"one of {', '.join(_WORDS)}")
        left = [phase for phase in Phase if phase not in self.done]
        if word == "verify":
            return []
        if word == "full":
            return left
        if not left or left[0] != word:
            remedy = f"`lean-ops emulate {left[0]}` comes next." if left else "A new emulation needs a new home."
            found = f"done: {', '.join(self.done) or 'nothing'}"
            raise WrongUseError(f"it is not the turn of {word}", found=found, remedy=remedy)
        return [Phase(word)]

    def phase_begins(self, phase: Phase) -> None:
        """Note that a phase has begun."""
        self.is_replay = self.begun == phase
        self.redelivered = self.redelivered or self.is_replay
        self.begun = phase
        self._write()

    def phase_ends(self, phase: Phase) -> None:
        """Note that a phase is over."""
        self.done.append(phase)
        self.begun = None
        self._write()

    def _write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "size": self.emulation.size,
            "seed": self.emulation.seed,
            "done": self.done,
            "begun": self.begun,
            "redelivered": self.redelivered,
        }
        unfinished = self.folder / f".{_FILE}.partial"
        unfinished.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        unfinished.rename(self.folder / _FILE)


def begin(home: Path, size: int | None, seed: int | None) -> EmulationLog:
    """The home's emulation, a new one if it has none; WrongUseError if it has one of another size or seed."""
    file = home / FOLDER / _FILE
    if not file.is_file():
        return EmulationLog(file.parent, Emulation(size or DEFAULT_SIZE, 1 if seed is None else seed), [])
    log = _read(file)
    asked = replace(log.emulation, **{name: it for name, it in (("size", size), ("seed", seed)) if it is not None})
    if asked != log.emulation:
        raise WrongUseError(
            "this home has another emulation",
            where=str(file),
            found=f"size {log.emulation.size}, seed {log.emulation.seed}",
            remedy="Leave out --size and --seed to go on with it, or choose another home.",
        )
    return log


def _read(file: Path) -> EmulationLog:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        emulation = Emulation(content["size"], content["seed"])
        begun = None if content["begun"] is None else Phase(content["begun"])
        return EmulationLog(file.parent, emulation, list(map(Phase, content["done"])), begun, content["redelivered"])
    except (ValueError, KeyError, TypeError) as error:
        raise TerminalError(
            "not the log of an emulation", where=str(file), found=str(error), remedy="Begin again in another home."
        ) from error
