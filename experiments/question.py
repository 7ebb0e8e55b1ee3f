# SPDX-License-Identifier: Apache-2.0
"""What the questions share: each folder's run.py simulates its rows, writes result.csv and figure.svg, and puts its answer,
with the numbers in it, into README.md. With --check it writes nothing and fails when one of them would change.
"""
from __future__ import annotations

import csv
import os
import pathlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import trainsim  # noqa: E402  (found by the line above)

Row = dict[str, Any]
GIB = 2**30
# Numbers are written with this many digits, and may differ by one in the last when they are checked.
DIGITS = 6
TOLERANCE = 2e-5


def measure(result: trainsim.Result) -> Row:
    """The columns that every result.csv has."""
    gpus = result.plan.gpus
    share = {cause: seconds / result.step_time_s for cause, seconds in result.breakdown.to_dict().items()}
    return {"gpus": gpus, "step_time_s": result.step_time_s, "tokens_per_s_per_gpu": result.tokens_per_s_per_gpu,
            "mfu": result.mfu, "bubble_ratio": result.bubble_ratio, "bubble_ratio_theory": result.bubble_ratio_theory,
            "tensor_share": share["tensor_communication"], "pipeline_share": share["pipeline_communication"],
            "data_share": share["data_communication"], "peak_memory_gib": result.peak_memory_bytes / GIB,
            "verdict": result.verdict}


Point = tuple[Mapping[str, Any], Mapping[str, Any]]


def simulate(config: Any, points: Sequence[Point], further: Callable[[trainsim.Result], Row] = lambda _: {}) -> list[Row]:
    """Runs `config` once per point, which is (columns that name it, overrides); all processors share the work. `further`
    makes more columns."""
    def one(point: Point) -> Row:
        names, overrides = point
        result = trainsim.run(config, overrides)
        return {**names, **measure(result), **further(result)}

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(one, points))


def column(rows: Sequence[Row], name: str, **where: Any) -> list[Any]:
    """The values of a column in the rows whose other columns are as given."""
    return [row[name] for row in rows if all(row[key] == value for key, value in where.items())]


def row_of(rows: Sequence[Row], **where: Any) -> Row:
    """The row whose columns are as given. REQUIRES: there is just one."""
    (found,) = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return found


def percent(share: float, digits: int = 1) -> str:
    """A share as "4.8 %"."""
    return f"{100 * share:.{digits}f} %"


def expect(holds: bool, claim: str) -> None:
    """Ends the script when a sentence of the answer is no longer true."""
    if not holds:
        raise SystemExit(f"no longer true: {claim}; write a new answer")


def answer_with(script: str, rows: Callable[[], list[Row]], answer: Callable[[list[Row]], str],
                figure: Callable[[list[Row]], str]) -> None:
    """Does what the command line of a question's script asks for; `script` is its __file__."""
    folder = pathlib.Path(script).resolve().parent
    if sys.argv[1:] not in ([], ["--check"]):
        raise SystemExit(f"usage: {pathlib.Path(script).name} [--check]")
    table = rows()
    page = (folder / "README.md").read_text(encoding="utf-8")
    new_page = re.sub(r"(?s)(<!-- answer -->\n).*?(<!-- end -->)", lambda match: match[1] + _wrapped(answer(table)) + match[2],
                      page)
    if sys.argv[1:] == ["--check"]:
        _check(folder, table, page == new_page)
        return
    with open(folder / "result.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table[0])
        writer.writerows([_text(value) for value in row.values()] for row in table)
    (folder / "figure.svg").write_text(figure(table), encoding="utf-8")
    (folder / "README.md").write_text(new_page, encoding="utf-8")
    print(answer(table))


def _check(folder: pathlib.Path, table: Sequence[Row], page_is_true: bool) -> None:
    name = f"experiments/{folder.name}"
    with open(folder / "result.csv", encoding="utf-8", newline="") as file:
        kept = list(csv.reader(file))
    new = [list(table[0])] + [[_text(value) for value in row.values()] for row in table]
    if [len(row) for row in kept] != [len(row) for row in new] or kept[0] != new[0]:
        raise SystemExit(f"{name}/result.csv has other rows or columns; run {name}/run.py")
    for old_row, new_row in zip(kept, new):
        for title, old, fresh in zip(kept[0], old_row, new_row):
            if not _same(old, fresh):
                raise SystemExit(f"{name}/result.csv says {title} = {old}, the program now {fresh}; run {name}/run.py "
                                 f"and read what it changed")
    if not page_is_true:
        raise SystemExit(f"the answer in {name}/README.md is not what the program says; run {name}/run.py")
    print(f"{name}: {len(table)} rows as recorded")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    return "" if value is None else str(value)


def _same(old: str, new: str) -> bool:
    try:
        return abs(float(old) - float(new)) <= TOLERANCE * max(abs(float(old)), 1e-9)
    except ValueError:
        return old == new


def _wrapped(text: str) -> str:
    """Lines of at most 110 characters; a "%" stays with its number."""
    result, line = "", ""
    for word in re.split(r" (?!%)", text):
        if line and len(line) + 1 + len(word) > 110:
            result, line = result + line + "\n", word
        else:
            line = f"{line} {word}" if line else word
    return result + line + "\n"
