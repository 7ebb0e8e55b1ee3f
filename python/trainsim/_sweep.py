# SPDX-License-Identifier: Apache-2.0
"""Many runs of one configuration."""
from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from trainsim._commands import Config, run
from trainsim._errors import InputError
from trainsim._overrides import Overrides, merged
from trainsim._results import Result

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Rejected:
    """A point of a sweep that is not legal."""

    #: What was varied, as dotted keys.
    point: dict[str, Any]
    #: The program's message.
    error: InputError


class Sweep(Sequence[Result]):
    """The results of a sweep, in the order of its points; those that are not legal are in `rejected`."""

    def __init__(self, results: Sequence[Result], rejected: Sequence[Rejected]) -> None:
        self._results = list(results)
        #: Points that are not legal, with the reason.
        self.rejected: list[Rejected] = list(rejected)

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...

    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    def __repr__(self) -> str:
        lines = [f"<Sweep: {len(self)} results, {len(self.rejected)} rejected"]
        lines += [f"  {result!r}" for result in self]
        return "\n".join(lines) + ">"

    def best(self, key: str = "step_time_s", *, largest: bool = False, must_fit: bool = True) -> Result:
        """The result with the least (or largest) `key` among those that fit. Raises ValueError when there is none."""
        candidates = [result for result in self if result.fits or not must_fit]
        if not candidates:
            raise ValueError("no point of the sweep fits in memory; must_fit=False looks at all of them")
        return (max if largest else min)(candidates, key=lambda result: result[key])

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary per result: what was varied, then every number, text and boolean of the result, and the
        seconds of the breakdown as breakdown.CAUSE."""
        rows = []
        for result in self:
            row = dict(result.point)
            data = result.to_dict()
            row.update({key: value for key, value in data.items() if not isinstance(value, dict | list)})
            row.update({f"breakdown.{cause}": seconds for cause, seconds in data["breakdown"].items()})
            rows.append(row)
        return rows

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes `rows` to a file with a header."""
        rows = self.rows()
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def to_pandas(self) -> pandas.DataFrame:
        """`rows` as a pandas DataFrame. Raises ImportError when pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas, which is not installed; rows() and to_csv() do without") from None
        return pandas.DataFrame(self.rows())


def sweep(config: Config, vary: Mapping[str, Sequence[Any]], overrides: Overrides | None = None, *,
          jobs: int | None = None, timeout: float | None = None,
          progress: Callable[[int, int], None] | None = None, **sections: Any) -> Sweep:
    """Simulates the cross product of the values of `vary`, the last key varying fastest.

    vary: values by dotted key: {"plan.micro_batch_size": [1, 2, 4], "plan.recompute": ["none", "full"]}.
    jobs: runs at the same time; by default one per processor that this process may use.
    timeout: seconds for one run.
    progress: called with the number of finished runs and of all, in the calling thread.

    Points that are not legal are collected in `rejected` of the result; when no point is legal, the first one's
    InputError is raised. Other arguments as in `run`.
    """
    points = _points(vary)
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")
    fixed = merged(overrides, sections)

    def outcome(point: dict[str, Any]) -> Result | Rejected:
        try:
            return Result(run(config, fixed | point, timeout=timeout).to_dict(), point)
        except InputError as error:
            return Rejected(point, error)

    outcomes: list[Result | Rejected] = []
    with ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        try:
            for done in pool.map(outcome, points):
                outcomes.append(done)
                if progress is not None:
                    progress(len(outcomes), len(points))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    rejected = [item for item in outcomes if isinstance(item, Rejected)]
    if len(rejected) == len(points):
        raise rejected[0].error
    return Sweep([item for item in outcomes if isinstance(item, Result)], rejected)


def _points(vary: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The cross product; every list must hold something."""
    if not vary:
        raise ValueError("a sweep needs something to vary, such as {'plan.micro_batch_size': [1, 2, 4]}")
    for key, values in vary.items():
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise ValueError(f"{key}: a list of values is needed, not {values!r}")
    lists = {key: list(values) for key, values in vary.items()}
    for key, values in lists.items():
        if not values:
            raise ValueError(f"{key}: the list of values is empty, so there is nothing to run")
    return [dict(zip(lists, values)) for values in itertools.product(*lists.values())]
