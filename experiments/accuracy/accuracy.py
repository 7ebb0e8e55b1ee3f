#!/usr/bin/env python3
"""Simulates measured runs and prints the errors of the step time.

usage: accuracy.py TRAINSIM [--check]

--check fails when a family's mean or worst absolute error is above the limit in limits.csv. The limits are the
errors of the committed version plus half a point, so that a change can't make the model worse unnoticed.
"""
import csv
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CONFIGS = HERE.parent.parent / "configs"


def simulate(trainsim, config):
    command = [trainsim, str(CONFIGS / f"{config}.yaml"), "--format", "json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["step_time_s"]


def read(name):
    with open(HERE / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main(trainsim, check):
    errors = {}
    print(f"{'config':32}{'measured s':>12}{'simulated s':>13}{'error %':>9}")
    for row in read("measured.csv"):
        measured = float(row["step_time_s"])
        simulated = simulate(trainsim, row["config"])
        error = 100 * (simulated / measured - 1)
        errors.setdefault(row["family"], []).append(abs(error))
        print(f"{row['config']:32}{measured:12.3f}{simulated:13.3f}{error:9.1f}")
    good = True
    limits = {row["family"]: row for row in read("limits.csv")}
    for family, values in errors.items():
        mean, worst = sum(values) / len(values), max(values)
        print(f"{family}: {len(values)} rows, mean absolute error {mean:.1f} %, worst {worst:.1f} %")
        limit = limits[family]
        if mean > float(limit["mean_percent"]) or worst > float(limit["worst_percent"]):
            print(f"  above the limits of limits.csv ({limit['mean_percent']} % and {limit['worst_percent']} %)")
            good = False
    return 0 if good or not check else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], "--check" in sys.argv[2:]))
