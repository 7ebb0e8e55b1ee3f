#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `trainsim check` on every NAME.yaml here and compares what it prints with NAME.err.

usage: run.py PATH_TO_TRAINSIM [--update] [NAME ...]

Each input is wrong: the exit code must be 2, standard output empty, and standard error exactly NAME.err.
With --update the .err files are rewritten; read every one of them before it is committed.
"""
import argparse
import difflib
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def run(trainsim, name):
    """The exit code and both outputs for one input, run from this folder so that paths are short."""
    done = subprocess.run([trainsim, "check", name + ".yaml"], cwd=HERE, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def faults(name, code, stdout, stderr):
    """What is not as it should be, as lines to print."""
    found = []
    if code != 2:
        found.append(f"exit code {code}, not 2")
    if stdout:
        found.append(f"standard output is not empty: {stdout[:200]!r}")
    expected_file = HERE / (name + ".err")
    expected = expected_file.read_text(encoding="utf-8") if expected_file.exists() else ""
    if stderr != expected:
        found += difflib.unified_diff(
            expected.splitlines(), stderr.splitlines(), name + ".err", "standard error", lineterm=""
        )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trainsim")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_intermixed_args()
    trainsim = str(pathlib.Path(options.trainsim).resolve())
    names = options.names or sorted(path.stem for path in HERE.glob("*.yaml"))
    failed = 0
    for name in names:
        code, stdout, stderr = run(trainsim, name)
        if options.update:
            (HERE / (name + ".err")).write_text(stderr, encoding="utf-8")
        found = faults(name, code, stdout, stderr)
        if found:
            failed += 1
            print(f"{name}:", *found, sep="\n  ")
    print(f"{len(names) - failed} of {len(names)} wrong inputs are reported as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
