# SPDX-License-Identifier: Apache-2.0
# A script in cells: VS Code, PyCharm and Spyder run it cell by cell, `jupytext --to ipynb` makes a notebook of it, and
# `python3 micro_batches.py` runs all of it.

# %% [markdown]
# # How many micro-batches, and how large?
# GPT-3 175B on 1024 A100 with eight pipeline stages. The batch is fixed at 1536 sequences, so larger micro-batches are
# fewer micro-batches: kernels get more efficient, the bubble grows, and activations need more memory.

# %%
import trainsim

base = trainsim.run("gpt175b")
base

# %% [markdown]
# ## Where does the step go?
# `breakdown` has the seconds of each cause and adds up to the step time.

# %%
for cause, seconds in sorted(base.breakdown.to_dict().items(), key=lambda item: -item[1]):
    print(f"{cause:24} {seconds:8.3f} s {100 * seconds / base.step_time_s:5.1f} %")

# %% [markdown]
# ## Vary the size of a micro-batch
# `sweep` runs the cross product of the values on all processors. Points that are not legal are kept with the reason: a
# replica's 96 sequences do not divide into micro-batches of 5, and 12 micro-batches can't be interleaved over 8 stages.

# %%
sweep = trainsim.sweep("gpt175b", {"plan.micro_batch_size": [1, 2, 3, 4, 5, 6, 8]})
for result in sweep:
    print(f"{result.plan.micro_batch_size:3} x {result.plan.micro_batches:3} {result.step_time_s:8.2f} s   bubble "
          f"{100 * result.bubble_ratio:4.1f} %   {result.peak_memory_bytes / 2**30:5.1f} GiB   {result.verdict}")
for rejected in sweep.rejected:
    print(f"{rejected.point}: {str(rejected.error).splitlines()[0]}")

# %% [markdown]
# ## Decide

# %%
best = sweep.best()
print(f"fastest that fits: micro_batch_size {best.plan.micro_batch_size}, "
      f"{100 * (1 - best.step_time_s / base.step_time_s):.1f} % faster than {base.plan.micro_batch_size}")

# %% [markdown]
# ## As a table
# With pandas, `sweep.to_pandas()` has one row per point; without, `rows()` and `to_csv()` give the same.

# %%
columns = ["plan.micro_batch_size", "step_time_s", "mfu", "bubble_ratio", "peak_memory_bytes"]
try:
    print(sweep.to_pandas()[columns])
except ImportError:
    for row in sweep.rows():
        print({column: row[column] for column in columns})
