# SPDX-License-Identifier: Apache-2.0
"""One function per command of the program."""
from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from trainsim import _program
from trainsim._errors import DoesNotFit, InputError
from trainsim._overrides import Overrides, merged, set_arguments
from trainsim._results import Check, MemoryReport, Result

#: A preset's name, the path of a file, or the content of a file as a mapping.
Config = str | os.PathLike[str] | Mapping[str, Any]


def run(config: Config, overrides: Overrides | None = None, *, require_fit: bool = False, fold: bool = True,
        uncertainty: bool = False, timeout: float | None = None, **sections: Any) -> Result:
    """Simulates one training step.

    config: a preset's name ("gpt175b"), the path of a YAML file, or its content as a dictionary (paths in it start from
        the working directory).
    overrides: values to change, by dotted key: {"plan.micro_batch_size": 2, "cluster.nic_bandwidth": "100 Gb/s"}.
    sections: the same by section: plan={"micro_batch_size": 2}, gpus=512. They win over `overrides`.
    require_fit: raise DoesNotFit when the plan does not fit in memory, instead of a result whose `fits` is False.
    fold: simulate one of each group of identical ranks (exact, and the default) or all of them.
    uncertainty: also vary the constants of the hardware in their ranges; `result.uncertainty` is the interval of the step
        time and what it hangs on. Takes about a hundred runs more.
    timeout: seconds after which to give up; None waits.

    Raises InputError with the program's message when the configuration or an override is wrong.
    """
    arguments = set_arguments(merged(overrides, sections))
    if not fold:
        arguments += ["--fold", "off"]
    if uncertainty:
        arguments.append("--uncertainty")
    if require_fit:
        arguments.append("--require-fit")
    data, code, messages = _program.call("run", config, arguments, timeout)
    result = Result(data)
    if code == _program.DOES_NOT_FIT:
        raise DoesNotFit(messages, result)
    return result


def memory(config: Config, overrides: Overrides | None = None, *, rank: int | None = None,
           timeout: float | None = None, **sections: Any) -> MemoryReport:
    """Where the memory of the fullest rank, or of `rank`, goes: tensors alive at the peak, the curve over the step, and
    changes that would make the plan fit. Input and errors as in `run`."""
    arguments = set_arguments(merged(overrides, sections))
    if rank is not None:
        arguments += ["--rank", str(rank)]
    return MemoryReport(_program.call("memory", config, arguments, timeout)[0])


def check(config: Config, overrides: Overrides | None = None, *, timeout: float | None = None, **sections: Any) -> Check:
    """Validates without simulating: derived values and defaults taken. Input as in `run`; raises InputError with every
    problem at once."""
    return Check(_program.call("check", config, set_arguments(merged(overrides, sections)), timeout)[0])


def presets(kind: str) -> dict[str, str]:
    """Names of the presets that ship, with a note on each; `kind` is models, gpus, clusters or configs."""
    done = subprocess.run([_program.find_program(), "list", kind, "--format", "json"], stdin=subprocess.DEVNULL,
                          capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise InputError(done.stderr.strip())
    return {preset["name"]: preset["note"] for preset in json.loads(done.stdout)}
