# SPDX-License-Identifier: Apache-2.0
"""Runs trainsim, a simulator of one training step of a large model on a GPU cluster, and gives its results as objects.

    >>> import trainsim
    >>> result = trainsim.run("gpt175b", plan={"micro_batch_size": 2})
    >>> result.step_time_s, result.bubble_ratio, result.fits

All numbers are those of `trainsim --format json` under the same names: times in seconds, memory in bytes.
"""
from trainsim._commands import check, memory, presets, run
from trainsim._errors import DoesNotFit, InputError, ProgramFailed, ProgramNotFound, TrainsimError
from trainsim._program import find_program
from trainsim._results import Check, MemoryReport, Rank, Record, Result
from trainsim._sweep import Rejected, Sweep, sweep

__version__ = "0.1.0"
__all__ = [
    "Check", "DoesNotFit", "InputError", "MemoryReport", "ProgramFailed", "ProgramNotFound", "Rank", "Record",
    "Rejected", "Result", "Sweep", "TrainsimError", "check", "find_program", "memory", "presets", "run", "sweep",
]
