#!/usr/bin/env python3
"""Checks that docs/output.md names every field of the JSON result, and that the README's commands exist.

usage: documentation_test.py TRAINSIM
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What makes the optional parts of a result appear.
WHOLE_RUN = ["run.tokens=1B", "run.price_per_gpu_hour=2 USD", "run.power.grid_intensity=400 g/kWh",
             "run.failures={gpu_mtbf: 50_000 h, restart_time: 10 min}", "run.checkpoint={stall: 10 s}"]


def names(value):
    """All keys of a JSON tree."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from names(inner)
    elif isinstance(value, list) and value:
        yield from names(value[0])


def problems(trainsim):
    command = [trainsim, str(ROOT / "configs/small-tp2-pp2-dp2.yaml"), "--format", "json", "--quiet"]
    for setting in WHOLE_RUN:
        command += ["--set", setting]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    output = (ROOT / "docs/output.md").read_text(encoding="utf-8")
    for name in sorted(set(names(result))):
        if not re.search(rf"`[^`]*\b{re.escape(name)}\b[^`]*`", output):
            yield f"docs/output.md does not explain `{name}`"
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"\b(?:configs|scripts|models|topologies|docs)/[\w./-]*\w", text):
            if "NAME" not in path and not (ROOT / path).exists():
                yield f"{page.name} mentions {path}, which does not exist"


def main(trainsim):
    found = list(problems(trainsim))
    print("\n".join(found) if found else "the documentation matches the program")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
