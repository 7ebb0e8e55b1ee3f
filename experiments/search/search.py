#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How good are the plans that `trainsim search` picks? Writes results.json beside itself; README.md explains it.

usage: search.py TRAINSIM [--check]

--check compares what must hold and writes nothing.
"""
import csv
import json
import pathlib
import resource
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# What a pick may cost against the best measured plan.
MOST_REGRET = 0.03


def processor_time():
    """Seconds of all processes that have been started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def search(trainsim, config, *options):
    """Result of a search, how long it took, and how much of all processors."""
    begin, before = time.monotonic(), processor_time()
    done = subprocess.run([trainsim, "search", str(config), "--quiet", "--format", "json", *options],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout), time.monotonic() - begin, processor_time() - before


def key(plan):
    return tuple(int(plan[name]) for name in
                 ("tensor_parallel", "pipeline_parallel", "data_parallel", "micro_batch_size", "global_batch_size"))


def gpt_175b(trainsim):
    """The published plan of configs/gpt175b.yaml against what the search finds."""
    result, seconds, processor_seconds = search(trainsim, "gpt175b", "-j", "2")
    return {"seconds": round(seconds, 1), "processor_seconds": round(processor_seconds, 1),
            "own": result["own"], "plans": result["plans"],
            "considered": result["considered"], "legal": result["legal"], "ranked": result["ranked"],
            "confirmed": result["confirmed"], "rejected": result["rejected"]}


def bloom(trainsim):
    """The search's order of plans against measured times: of the plans that were measured, the one that it puts first
    is what a planner would have run. Times are per sequence, as batches differ."""
    with open(HERE / "bloom_181b.csv", encoding="utf-8") as file:
        measured = {key(row): float(row["step_time_s"] or "nan") / int(row["global_batch_size"])
                    for row in csv.DictReader(file)}
    order = []
    for batch in (2048, 2016):
        result, _, _ = search(trainsim, HERE / "bloom-181b.yaml", "--set", f"plan.global_batch_size={batch}",
                           "--vary", "tensor_parallel=2,4,8", "--vary", "pipeline_parallel=1,2,4,6,8,12,24",
                           "--vary", "micro_batch_size=1,2,4", "--vary", "schedule=1f1b", "--vary",
                           "virtual_pipeline=1", "--vary", "recompute=full", "--vary", "sharding=zero1",
                           "--top", "1000")
        order += [(plan["step_time_s"] / batch, key(plan)) for plan in result["plans"] if key(plan) in measured]
    ranking = [plan for _, plan in sorted(order)]
    best = min(value for value in measured.values() if value == value)
    return {"ranking": [{"plan": list(plan), "measured_s_per_sequence": measured[plan]} for plan in ranking],
            "best_measured_s_per_sequence": best, "regret": measured[ranking[0]] / best - 1,
            "ran_out_of_memory_but_ranked": [list(plan) for plan in ranking if measured[plan] != measured[plan]]}


def check(results):
    plans, trials = results["gpt_175b"], results["bloom"]
    assert plans["plans"][0]["step_time_s"] <= plans["own"]["step_time_s"], "the published plan is faster"
    assert trials["regret"] <= MOST_REGRET, f"regret {trials['regret']:.2%}"
    assert not trials["ran_out_of_memory_but_ranked"], trials["ran_out_of_memory_but_ranked"]


def main(trainsim, *options):
    results = {"gpt_175b": gpt_175b(trainsim), "bloom": bloom(trainsim)}
    check(results)
    if "--check" not in options:
        (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"GPT-3 175B on 1,024 A100: {results['gpt_175b']['plans'][0]['step_time_s']:.2f} s, published plan "
          f"{results['gpt_175b']['own']['step_time_s']:.2f} s; searched in {results['gpt_175b']['seconds']} s "
          f"({results['gpt_175b']['processor_seconds']} s of processors)")
    print(f"BLOOM's trials: regret {results['bloom']['regret']:.2%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
