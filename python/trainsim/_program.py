# SPDX-License-Identifier: Apache-2.0
"""Finds the trainsim program, and runs it once."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from trainsim._errors import InputError, ProgramFailed, ProgramNotFound

BAD_INPUT = 2
DOES_NOT_FIT = 3


def find_program() -> str:
    """The path of the program: the environment variable TRAINSIM, else `trainsim` on the PATH, else, when this package
    lies in trainsim's source tree, build/release/trainsim or scripts/trainsim (which builds it) there.

    Raises ProgramNotFound.
    """
    named = os.environ.get("TRAINSIM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProgramNotFound(f"TRAINSIM names '{named}', which is not a program; correct or unset it")
        return os.path.abspath(found)
    found = shutil.which("trainsim")
    if found is not None:
        return found
    root = pathlib.Path(__file__).resolve().parents[2]
    for candidate in (root / "build/release/trainsim", root / "scripts/trainsim"):
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    raise ProgramNotFound("the trainsim program is not on the PATH; install it, or set TRAINSIM to its path")


def call(command: str, config: str | os.PathLike[str] | Mapping[str, Any], arguments: Sequence[str],
         timeout: float | None) -> tuple[dict[str, Any], int, str]:
    """Runs `trainsim COMMAND CONFIG ARGUMENTS…` and returns its JSON, its exit code (0 or 3) and its messages.

    A mapping is given to the program on its standard input. Raises InputError, ProgramFailed or ProgramNotFound.
    """
    text = None
    if isinstance(config, Mapping):
        text = json.dumps(config, indent=2, default=plain)
        config = "/dev/stdin"
    words = [find_program(), command, os.fspath(config), *arguments, "--format", "json", "--quiet"]
    try:
        # Without input, nothing is left open that the program could read from a terminal.
        done = subprocess.run(words, input=text or "", capture_output=True, encoding="utf-8", timeout=timeout,
                              check=False)
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"trainsim took longer than the timeout of {timeout:g} s") from None
    except OSError as error:
        raise ProgramFailed(f"{words[0]} can't be run: {error.strerror}") from error
    messages = done.stderr.strip()
    if done.returncode == BAD_INPUT:
        raise InputError(messages)
    if done.returncode not in (0, DOES_NOT_FIT):
        raise ProgramFailed(messages or f"{words[0]} ended with code {done.returncode} and said nothing")
    try:
        return json.loads(done.stdout), done.returncode, messages
    except json.JSONDecodeError:
        raise ProgramFailed(f"{words[0]} does not print JSON; is it trainsim?") from None


def plain(value: Any) -> Any:
    """What JSON can hold of a value that it does not know: numbers of NumPy, paths."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a configuration can't hold {value!r} ({type(value).__name__})")
