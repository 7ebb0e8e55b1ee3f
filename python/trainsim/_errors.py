# SPDX-License-Identifier: Apache-2.0
"""What can go wrong; everything is a TrainsimError."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainsim._results import Result


class TrainsimError(Exception):
    """Base of all errors of this package."""


class InputError(TrainsimError, ValueError):
    """The configuration or an override is wrong. The text is the program's: place, line, cause and cure."""


class DoesNotFit(TrainsimError):
    """The plan does not fit in memory, and `require_fit=True` was given. `result` is the run all the same."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


class ProgramNotFound(TrainsimError, FileNotFoundError):
    """There is no trainsim program in any of the places where it is looked for."""


class ProgramFailed(TrainsimError, RuntimeError):
    """The program ended in a way that is not the input's fault, or took longer than `timeout`."""
