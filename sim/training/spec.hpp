// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/units.hpp"

namespace trainsim::training {

/// A batch that grows at the start of a run, as with Megatron-LM's --rampup-batch-size.
struct BatchRamp {
  /// Sequences of the first steps, and by how many the batch grows each time.
  std::int64_t start = 1;
  std::int64_t increment = 1;
  /// Sequences after which the batch has its full size; every size gets the same share of them.
  std::int64_t samples = 1;
};

/// What a GPU costs for an hour.
struct Price {
  double per_gpu_hour = 0;
  /// Code of three letters, as ISO 4217 has them.
  std::string currency;
};

/// What surrounds GPUs and draws power, and where that comes from.
struct PowerSpec {
  /// Power of the data centre over that of its computers, >= 1.
  double pue = 1.0;
  /// Grams of CO2 per kilowatt-hour, if known.
  std::optional<double> grid_intensity;
  /// What a node draws beside its GPUs: processors, memory, NICs, switches, fans.
  Watts node_overhead = 0;
};

/// Failures that end the job, as a Poisson process.
struct FailureSpec {
  /// Mean time between failures of one GPU, with its share of everything else that can fail.
  Seconds gpu_mtbf = 0;
  /// From a failure until training goes on from a checkpoint.
  Seconds restart_time = 0;
  /// Runs to simulate, and what they are drawn from.
  std::int64_t runs = 1000;
  std::uint64_t seed = 1;
};

/// How state is saved.
struct CheckpointSpec {
  /// Time or steps between two checkpoints; with neither it is chosen.
  std::optional<Seconds> interval;
  std::optional<std::int64_t> interval_steps;
  /// Bytes of a checkpoint; without, those of parameters and optimizer.
  std::optional<Bytes> size;
  std::optional<BytesPerSecond> write_bandwidth;
  /// How long training stops for one; without, until it is written. With both, the rest of the writing goes
  /// on beside training.
  std::optional<Seconds> stall;
  /// Whether it is written through the NICs of the compute fabric, which slows the steps beside it; else
  /// through NICs of their own.
  bool through_compute = false;
};

/// What is asked of a whole training run. Exactly one of tokens and steps is given.
struct TrainingSpec {
  std::optional<std::int64_t> tokens;
  std::optional<std::int64_t> steps;
  std::optional<BatchRamp> ramp;
  std::optional<Price> price;
  PowerSpec power;
  std::optional<FailureSpec> failures;
  std::optional<CheckpointSpec> checkpoint;
};

}  // namespace trainsim::training
