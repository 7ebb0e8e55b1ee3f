#!/usr/bin/env python3
"""Simulates measured runs and prints the errors of the step time.

usage: accuracy.py TRAINSIM [--check] [FAMILY…]

Families are those of limits.csv; all by default. --check fails when a family's mean or worst absolute error is above
its limit there. The limits are the errors of the committed version plus half a point, so that a change can't make the
model worse unnoticed.
"""
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CONFIGS = HERE.parent.parent / "configs"
VALIDATION = HERE.parent / "validation"

# Of the single-node runs those whose number leaves this remainder are tested; those that leave 0 were used to fit
# launch_interval_eager.
PARTS = 12
TESTED = 6

# What the vTrain authors ran (arXiv 2312.12391): Megatron-LM with full recomputation in fp16 on nodes of eight
# A100-80GB with 800 Gb/s of InfiniBand each; assumed here: four NICs of 200 Gb/s, fp16 gradients, one reduction after
# the last backward, no overlap of tensor-parallel communication (the software of 2021).
VTRAIN_CONFIG = """
model: {{num_layers: {layers}, hidden_size: {hidden}, num_attention_heads: {heads}, vocab_size: 50257,
  sequence_length: {seq}, attention: standard, dropout: 0.1}}
cluster: {{extends: dgx-a100-80gb, nics_per_node: 4}}
gpus: {gpus}
plan: {{tensor_parallel: {tp}, pipeline_parallel: {pp}, data_parallel: {dp}, micro_batch_size: {micro_batch},
  global_batch_size: {global_batch}, recompute: full, precision: fp16, gradient_dtype: fp16,
  overlap_gradient_reduction: false, overlap_tensor_communication: false}}
"""


def simulate(trainsim, config):
    command = [trainsim, str(config), "--format", "json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["step_time_s"]


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shipped_rows(family):
    """Rows that have a configuration of their own: name, measured seconds, path."""
    for row in read(HERE / "measured.csv"):
        if row["family"] == family:
            yield row["config"], float(row["step_time_s"]), CONFIGS / f"{row['config']}.yaml"


def vtrain_rows(folder, table):
    for number, row in enumerate(read(VALIDATION / table)):
        if table == "vtrain_single_node.csv" and number % PARTS != TESTED:
            continue
        path = pathlib.Path(folder) / f"vtrain-{number}.yaml"
        path.write_text(VTRAIN_CONFIG.format(**row), encoding="utf-8")
        name = "h{hidden} x{gpus} TP{tp} DP{dp} PP{pp} mb{micro_batch}".format(**row)
        yield name, float(row["iter_ms"]) / 1000, path


def measure(trainsim, rows):
    """Prints each row; returns the absolute errors in per cent."""
    errors = []
    for name, measured, path in rows:
        simulated = simulate(trainsim, path)
        error = 100 * (simulated / measured - 1)
        errors.append(abs(error))
        print(f"{name:32}{measured:12.3f}{simulated:13.3f}{error:9.1f}")
    return errors


def main(trainsim, check, families):
    good = True
    print(f"{'run':32}{'measured s':>12}{'simulated s':>13}{'error %':>9}")
    for limit in read(HERE / "limits.csv"):
        family = limit["family"]
        if families and family not in families:
            continue
        with tempfile.TemporaryDirectory() as folder:
            table = f"{family}.csv"
            rows = vtrain_rows(folder, table) if (VALIDATION / table).exists() else shipped_rows(family)
            errors = measure(trainsim, rows)
        mean, worst = statistics.mean(errors), max(errors)
        print(f"{family}: {len(errors)} rows, mean absolute error {mean:.1f} %, "
              f"median {statistics.median(errors):.1f} %, worst {worst:.1f} %")
        if mean > float(limit["mean_percent"]) or worst > float(limit["worst_percent"]):
            print(f"  above the limits of limits.csv ({limit['mean_percent']} % and {limit['worst_percent']} %)")
            good = False
    return 0 if good or not check else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    words = sys.argv[2:]
    sys.exit(main(sys.argv[1], "--check" in words, [word for word in words if not word.startswith("-")]))
