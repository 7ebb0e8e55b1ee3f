// SPDX-License-Identifier: Apache-2.0
#include "sim/training/checkpointing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trainsim::training {

namespace {

/// Adds up steps to stretches between checkpoints.
class Cutter {
 public:
  explicit Cutter(std::int64_t interval) : interval_(interval) {}

  void add(const TimedStage& stage) {
    std::int64_t steps = stage.stage.steps;
    if (pending_ > 0) steps -= take(std::min(steps, interval_ - pending_), stage.step_time);
    const std::int64_t whole = steps / interval_;
    if (whole > 0) push(whole, static_cast<double>(interval_) * stage.step_time);
    take(steps % interval_, stage.step_time);
  }
  std::vector<Segments> finish() {
    if (pending_ > 0) push(1, work_);
    return std::move(segments_);
  }

 private:
  std::int64_t take(std::int64_t steps, Seconds step_time) {
    pending_ += steps;
    work_ += static_cast<double>(steps) * step_time;
    if (pending_ == interval_) {
      push(1, work_);
      pending_ = 0;
      work_ = 0;
    }
    return steps;
  }
  void push(std::int64_t count, Seconds work) { segments_.push_back({count, work, 0}); }

  std::int64_t interval_;
  std::int64_t pending_ = 0;
  Seconds work_ = 0;
  std::vector<Segments> segments_;
};

/// Sets apart the last of equal segments, which may end in another way than those before it.
void split_last(std::vector<Segments>& list, std::size_t index) {
  if (list[index].count == 1) return;
  Segments last = list[index];
  last.count = 1;
  --list[index].count;
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(index) + 1, last);
}

}  // namespace

Seconds young_interval(Seconds stall, const Hazard& hazard) {
  return std::sqrt(2.0 * stall * hazard.mtbf);
}

Seconds daly_interval(Seconds stall, const Hazard& hazard) {
  const double share = stall / (2.0 * hazard.mtbf);
  if (share >= 1.0) return hazard.mtbf;
  return young_interval(stall, hazard) * (1.0 + std::sqrt(share) / 3.0 + share / 9.0) - stall;
}

Seconds expected_time(Seconds stretch, const Hazard& hazard) {
  return hazard.mtbf * std::exp(hazard.restart / hazard.mtbf) * std::expm1(stretch / hazard.mtbf);
}

std::vector<Segments> segments(const std::vector<TimedStage>& stages, const Checkpoints& checkpoints) {
  Cutter cutter(checkpoints.interval);
  for (const TimedStage& stage : stages) cutter.add(stage);
  std::vector<Segments> list = cutter.finish();
  const Seconds written = std::max(checkpoints.stall, checkpoints.write);
  // What lies ahead of a checkpoint hides its writing.
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool last = i + 1 == list.size();
    if (last || list[i].work != list[i + 1].work) split_last(list, i);
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Seconds ahead = list[i].count > 1 ? list[i].work : i + 1 < list.size() ? list[i + 1].work : 0.0;
    list[i].stall = std::max(checkpoints.stall, written - ahead);
  }
  return list;
}

Seconds failure_free_time(const std::vector<Segments>& segments) {
  return std::accumulate(segments.begin(), segments.end(), 0.0, [](Seconds sum, const Segments& each) {
    return sum + static_cast<double>(each.count) * (each.work + each.stall);
  });
}

Seconds expected_time(const std::vector<Segments>& segments, const Hazard& hazard) {
  return std::accumulate(segments.begin(), segments.end(), 0.0, [&](Seconds sum, const Segments& each) {
    return sum + static_cast<double>(each.count) * expected_time(each.work + each.stall, hazard);
  });
}

}  // namespace trainsim::training
