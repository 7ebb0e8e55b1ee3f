// SPDX-License-Identifier: Apache-2.0
#include "sim/training/batch_stages.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace trainsim::training {

namespace {

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return count / unit + (count % unit > 0 ? 1 : 0);
}

/// Counts what a run has done until it ends.
class Progress {
 public:
  Progress(const TrainingSpec& spec, const Batch& full)
      : samples_left_(spec.tokens ? rounded_up(*spec.tokens, full.sequence_length) : kNoEnd),
        steps_left_(spec.steps.value_or(kNoEnd)) {}

  /// Steps of a batch until `samples` in total are done or the run ends.
  void go_on(std::int64_t batch, std::int64_t samples) {
    if (samples <= samples_) return;
    const std::int64_t wanted = rounded_up(samples - samples_, batch);
    const std::int64_t steps = std::min({wanted, rounded_up(samples_left_, batch), steps_left_});
    if (steps == 0) return;
    stages_.push_back({batch, steps});
    samples_ += steps * batch;
    samples_left_ -= std::min(samples_left_, steps * batch);
    steps_left_ -= steps;
  }
  std::vector<BatchStage> take() { return std::move(stages_); }

  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

 private:
  std::int64_t samples_ = 0;
  std::int64_t samples_left_;
  std::int64_t steps_left_;
  std::vector<BatchStage> stages_;
};

}  // namespace

std::int64_t increments(const BatchRamp& ramp, std::int64_t full) {
  return (full - ramp.start) / ramp.increment;
}

std::vector<BatchStage> batch_stages(const TrainingSpec& spec, const Batch& full) {
  Progress progress(spec, full);
  const std::int64_t count = spec.ramp ? increments(*spec.ramp, full.sequences) : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    progress.go_on(spec.ramp->start + i * spec.ramp->increment,
                   rounded_up((i + 1) * spec.ramp->samples, count));
  }
  progress.go_on(full.sequences, Progress::kNoEnd);
  return progress.take();
}

std::int64_t total_steps(const std::vector<BatchStage>& stages) {
  return std::accumulate(stages.begin(), stages.end(), std::int64_t{0},
                         [](std::int64_t sum, const BatchStage& stage) { return sum + stage.steps; });
}

std::int64_t total_samples(const std::vector<BatchStage>& stages) {
  return std::accumulate(
      stages.begin(), stages.end(), std::int64_t{0},
      [](std::int64_t sum, const BatchStage& stage) { return sum + stage.steps * stage.batch; });
}

}  // namespace trainsim::training
