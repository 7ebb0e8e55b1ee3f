#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens reports in Chromium: no error, zoom, hover, keyboard, paper, and what axe-core finds (look.mjs).

usage: browser_test.py TRAINSIM [FOLDER]

Screenshots go to FOLDER, report-screenshots in the working directory by default. Ends with 77, and says why, where
there is no Chromium or its npm packages can't be had.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIPPED = 77
HOSTILE = '</script><script>window.hacked=1;alert(1)<!--<img src=x onerror=alert(1)>'


def missing():
    """Why the test can't run here; empty if it can."""
    for program, package in (("node", "nodejs"), ("npm", "npm"), ("chromium", "chromium")):
        if shutil.which(program) is None:
            return f"{program} is missing; install the package {package}"
    installed = HERE / "node_modules" / ".package-lock.json"
    lock = HERE / "package-lock.json"
    if installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return ""
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=HERE, capture_output=True,
                          text=True, timeout=300, check=False)
    if done.returncode != 0:
        return "npm can't install tests/report/package.json: " + done.stderr.strip()[-500:]
    installed.touch()
    return ""


def hostile_config(folder):
    """A configuration whose texts would be scripts if they were not escaped; a file's name can't hold a slash."""
    config = {
        "description": HOSTILE,
        "model": {"name": HOSTILE, "num_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "vocab_size": 32000,
                  "sequence_length": 512},
        "cluster": "dgx-a100-80gb", "gpus": 4,
        "plan": {"tensor_parallel": 2, "pipeline_parallel": 2, "global_batch_size": 8},
    }
    path = pathlib.Path(folder) / (HOSTILE.replace("/", "") + ".yaml")
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def subject(config, folder):
    """A configuration's file."""
    return hostile_config(folder) if config == "hostile" else str(ROOT / "configs" / f"{config}.yaml")


# Name of the screenshots, command, configuration and further arguments.
PAGES = [
    ("gpt175b", "run", "gpt175b"),
    ("small-dp8", "run", "small-dp8"),
    ("slow-gpu", "run", "slow-gpu"),
    ("whole-run", "run", "gpt175b-300b-tokens"),
    ("asked", "run", "sc21-39.1b", "--what-if", "gpus=x2", "--what-if", "plan.global_batch_size=3072", "--sensitivity",
     "--uncertainty", "--samples", "10", "--placement", "--set", "simulation.steps=5", "--set",
     "simulation.jitter.compute=0.03"),
    ("hostile", "run", "hostile", "--what-if", f'model.name="{HOSTILE}",plan.micro_batch_size=2'),
    ("sweep-knee", "sweep", "gpt175b", "--vary", "plan.global_batch_size=192..3072*2"),
    ("sweep-map", "sweep", "gpt175b", "--vary", "plan.micro_batch_size=1,2,4,5,8", "--vary",
     "plan.recompute=none,selective,full", "--vary", "plan.pipeline_parallel=4,8,16"),
    ("sweep-gpus", "sweep", "gpt175b", "--vary", "gpus=512,1024,1536"),
    ("sweep-hostile", "sweep", "hostile", "--vary", f'plan.schedule=1f1b,gpipe,"{HOSTILE}"', "--vary",
     "plan.micro_batch_size=1,2"),
    ("compare", "compare", "gpt175b", "@plan.recompute=full", "@plan.pipeline_parallel=4,plan.virtual_pipeline=2"),
    ("compare-hostile", "compare", "hostile", "@gpus=8"),
    ("search", "search", "gpt175b", "--vary", "tensor_parallel=4,8", "--vary", "micro_batch_size=1,2", "--top", "8"),
    ("search-gpus", "search", "hostile", "--gpus", "2,4", "--top", "5"),
]


def look(trainsim, screenshots, name, command, config, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.html"
        subprocess.run([trainsim, command, subject(config, folder), *arguments, "--quiet", "--report", str(report)],
                       check=True, stdout=subprocess.DEVNULL, timeout=300)
        done = subprocess.run(["node", str(HERE / "look.mjs"), str(report), str(screenshots / name)],
                              capture_output=True, text=True, timeout=300, check=False)
    print(f"{name}: {done.stdout.strip()}{done.stderr.strip()}", flush=True)
    return done.returncode == 0


def main(trainsim, screenshots):
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    results = [look(trainsim, screenshots, *page) for page in PAGES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "report-screenshots")))
