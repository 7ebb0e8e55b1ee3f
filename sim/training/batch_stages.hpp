// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "sim/training/spec.hpp"

namespace trainsim::training {

/// Sequences of a step, and the tokens of each.
struct Batch {
  std::int64_t sequences = 1;
  std::int64_t sequence_length = 1;
};

/// Steps in a row with one batch size.
struct BatchStage {
  /// Sequences per step.
  std::int64_t batch = 1;
  std::int64_t steps = 0;
};

/// Times that a ramp's batch grows until it is `full`. REQUIRES: `full` is legal for the ramp (check.hpp).
std::int64_t increments(const BatchRamp& ramp, std::int64_t full);

/// The steps of a run in order. While n increments over R samples are under way, a step that begins after c
/// samples has start + floor(c n / R) · increment sequences, as in Megatron-LM; sizes that no step has are
/// left out. The last step is a whole one, so that a few more tokens may be trained than asked for.
std::vector<BatchStage> batch_stages(const TrainingSpec& spec, const Batch& full);

/// Steps, and sequences, of all stages.
std::int64_t total_steps(const std::vector<BatchStage>& stages);
std::int64_t total_samples(const std::vector<BatchStage>& stages);

}  // namespace trainsim::training
