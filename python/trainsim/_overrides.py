# SPDX-License-Identifier: Apache-2.0
"""Turns Python values into `--set KEY=VALUE`."""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainsim._program import plain

Overrides = Mapping[str, Any]


def merged(overrides: Overrides | None, sections: Overrides) -> dict[str, Any]:
    """One mapping of dotted keys: `overrides` first, then `sections`, whose mappings are taken apart one level deep:
    plan={"micro_batch_size": 2} is plan.micro_batch_size."""
    result = dict(overrides or {})
    for section, value in sections.items():
        if isinstance(value, Mapping):
            result.update({f"{section}.{key}": inner for key, inner in value.items()})
        else:
            result[section] = value
    return result


def set_arguments(overrides: Overrides) -> list[str]:
    """The words of the command line for overrides."""
    words = []
    for key, value in overrides.items():
        words += ["--set", f"{key}={yaml_text(value)}"]
    return words


def yaml_text(value: Any) -> str:
    """A value in YAML's flow style. A text stands for itself, as it would in a file: "80 GiB", "full"."""
    if isinstance(value, str):
        return value
    if hasattr(value, "__fspath__"):
        return str(value)
    return json.dumps(value, default=plain, ensure_ascii=False)
