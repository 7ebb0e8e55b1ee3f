# SPDX-License-Identifier: Apache-2.0
"""The JSON of the program as objects."""
from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any


class Record:
    """An object of the program's JSON: its keys are attributes, also of objects inside it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        # Only called for what is no true attribute. Copies are made without __init__, so _data may not be there yet.
        data = self.__dict__.get("_data", {})
        if name not in data:
            raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {', '.join(sorted(data))}")
        return _wrapped(data[name])

    def __getitem__(self, name: str) -> Any:
        if name not in self._data:
            raise KeyError(name)
        return _wrapped(self._data[name])

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self._data if key.isidentifier())]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._data == other._data

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dictionaries, lists, numbers and texts, as the program printed it."""
        return copy.deepcopy(self._data)

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}={_short(value)}" for key, value in self._data.items())
        return f"{type(self).__name__}({inside})"


class Rank(Record):
    """One group of identical ranks; `represents` says how many."""

    rank: int
    represents: int
    stage: int
    tensor_rank: int
    data_rank: int
    busy_s: float
    bubble_s: float
    breakdown: Record
    peak_memory_bytes: int
    memory_at_peak: Record


class Result(Record):
    """The result of one training step. Every key of the JSON result is an attribute; the most used are named here."""

    name: str
    step_time_s: float
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    samples_per_s: float
    model_tflops_per_gpu: float
    hardware_tflops_per_gpu: float
    mfu: float
    hfu: float
    bubble_ratio: float
    bubble_ratio_stage: float
    bubble_ratio_theory: float | None
    scaling_efficiency: float
    fits: bool
    verdict: str
    peak_memory_bytes: int
    memory_capacity_bytes: int
    memory_headroom_bytes: int
    parameters: float
    breakdown: Record
    plan: Record
    model: str
    cluster: str
    notes: list[str]
    warnings: list[str]
    simulation: Record

    def __init__(self, data: dict[str, Any], point: dict[str, Any] | None = None) -> None:
        super().__init__(data)
        #: What a sweep varied to get here, as dotted keys; empty for a single run.
        self.point: dict[str, Any] = dict(point or {})

    @property
    def ranks(self) -> list[Rank]:
        """One entry per group of identical ranks."""
        return [Rank(rank) for rank in self._data["ranks"]]

    def __repr__(self) -> str:
        gib = 2**30
        varied = "".join(f", {key}={_short(value)}" for key, value in self.point.items())
        return (f"<Result {self.name}{varied}: {self.step_time_s:.4g} s, MFU {100 * self.mfu:.1f} %, "
                f"bubble {100 * self.bubble_ratio:.1f} %, {self.peak_memory_bytes / gib:.1f} of "
                f"{self.memory_capacity_bytes / gib:.1f} GiB, {self.verdict}>")


class MemoryReport(Record):
    """Where the memory of the fullest rank (or of the one asked for) goes, and changes that would make it fit."""

    name: str
    rank: int
    stage: int
    verdict: str
    fits: bool
    peak_memory_bytes: int
    memory_capacity_bytes: int
    memory_at_peak: Record


class Check(Record):
    """A configuration that was found legal: `derived` and `defaults` (texts by key) and `warnings`."""

    name: str
    valid: bool
    derived: Record
    defaults: Record
    warnings: list[str]


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    if isinstance(value, float):
        return f"{value:.4g}"
    return repr(value) if not isinstance(value, str) or len(value) < 40 else repr(value[:39] + "…")
