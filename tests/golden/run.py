#!/usr/bin/env python3
"""Compares the JSON result of a shipped configuration with tests/golden/NAME.json.

usage: run.py TRAINSIM NAME [--update]

Numbers may differ by 1e-9 of themselves (compilers round differently); everything else must be equal.
scripts/update_goldens calls this with --update and shows what changed.
"""
import json
import math
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-9


def simulate(trainsim, name):
    config = HERE.parent.parent / "configs" / f"{name}.yaml"
    command = [trainsim, str(config), "--format", "json", "--quiet"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    del result["simulation"]["wall_s"]
    return result


def differences(path, expected, actual):
    if isinstance(expected, dict) and isinstance(actual, dict):
        if list(expected) != list(actual):
            yield f"{path}: keys {list(expected)} became {list(actual)}"
            return
        for key, value in expected.items():
            yield from differences(f"{path}.{key}", value, actual[key])
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path}: {len(expected)} entries became {len(actual)}"
            return
        for i, (left, right) in enumerate(zip(expected, actual)):
            yield from differences(f"{path}[{i}]", left, right)
    elif isinstance(expected, float) and isinstance(actual, (int, float)):
        if not math.isclose(expected, actual, rel_tol=TOLERANCE, abs_tol=1e-9):
            yield f"{path}: {expected} became {actual}"
    elif expected != actual:
        yield f"{path}: {expected} became {actual}"


def main(trainsim, name, update):
    golden = HERE / f"{name}.json"
    actual = simulate(trainsim, name)
    expected = json.loads(golden.read_text(encoding="utf-8")) if golden.exists() else {}
    found = list(differences(name, expected, actual))
    print("\n".join(found) if found else f"{name}: as recorded")
    if update and found:
        golden.write_text(json.dumps(actual, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if found and not update else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--update" in sys.argv[3:]))
