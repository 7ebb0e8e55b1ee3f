// SPDX-License-Identifier: Apache-2.0
#include "sim/training/failure_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace trainsim::training {

namespace {

/// Times of failures, one after another.
class FailureClock {
 public:
  FailureClock(Seconds mtbf, std::uint64_t seed, std::uint64_t number) : mtbf_(mtbf) {
    std::seed_seq sequence{seed, number};
    random_.seed(sequence);
    advance();
  }
  /// When the next failure comes.
  Seconds next() const { return next_; }
  /// Goes on to the one after it.
  void advance() {
    const double uniform = (static_cast<double>(random_() >> 11U) + 0.5) * 0x1p-53;
    next_ -= mtbf_ * std::log(uniform);
  }

 private:
  Seconds mtbf_;
  Seconds next_ = 0;
  std::mt19937_64 random_;
};

/// A run under way. Its events are failures, ends of segments and checkpoints becoming safe; the ends of
/// equal segments up to a failure are passed in one go.
class Run {
 public:
  Run(const std::vector<Segments>& segments, Seconds write, const Hazard& hazard, const FailureClock& clock)
      : segments_(segments), write_(write), hazard_(hazard), clock_(clock) {}

  SimulatedRun simulate() {
    while (at_.group < segments_.size()) {
      if (!advance()) fail();
    }
    return result_;
  }

 private:
  /// How many segments are done: all of the groups before, and some of this one.
  struct Place {
    std::size_t group = 0;
    std::int64_t done = 0;
    bool operator==(const Place&) const = default;
  };

  /// Completes as many equal segments as end before the next failure; false if that is none.
  bool advance() {
    const Segments& group = segments_[at_.group];
    const Seconds length = group.work + group.stall;
    const double room = std::max(0.0, std::floor((clock_.next() - now_) / length));
    const std::int64_t left = group.count - at_.done;
    const std::int64_t count = room < static_cast<double>(left) ? static_cast<std::int64_t>(room) : left;
    if (count == 0) return false;
    const auto times = static_cast<double>(count);
    result_.wall.work += times * group.work;
    result_.wall.checkpoints += times * group.stall;
    now_ += times * length;
    safe_at_ = now_ - group.stall + std::max(group.stall, write_);
    last_ = group;
    at_.done += count;
    if (at_.done == group.count) at_ = {at_.group + 1, 0};
    return true;
  }

  /// Goes back to the last safe checkpoint.
  void fail() {
    const Seconds failure = clock_.next();
    result_.wall.lost += failure - now_;
    if (at_ != resumed_ && failure < safe_at_) step_back();
    now_ = failure;
    ++result_.failures;
    clock_.advance();
    restart();
    resumed_ = at_;
  }

  /// The checkpoint before the last counts, and what came after it does not.
  void step_back() {
    result_.wall.work -= last_.work;
    result_.wall.checkpoints -= last_.stall;
    result_.wall.lost += last_.work + last_.stall;
    if (at_.done == 0) at_ = {at_.group - 1, segments_[at_.group - 1].count};
    --at_.done;
  }

  void restart() {
    while (clock_.next() < now_ + hazard_.restart) {
      result_.wall.restarts += clock_.next() - now_;
      now_ = clock_.next();
      ++result_.failures;
      clock_.advance();
    }
    result_.wall.restarts += hazard_.restart;
    now_ += hazard_.restart;
  }

  const std::vector<Segments>& segments_;
  Seconds write_;
  Hazard hazard_;
  FailureClock clock_;
  Seconds now_ = 0;
  Place at_;
  /// Where training last went on after a failure.
  Place resumed_;
  /// The segment that ended last, and when its checkpoint is written.
  Segments last_;
  Seconds safe_at_ = 0;
  SimulatedRun result_;
};

}  // namespace

SimulatedRun simulate_failures(const std::vector<Segments>& segments, Seconds write, const Hazard& hazard,
                               std::uint64_t seed, std::uint64_t number) {
  return Run(segments, write, hazard, FailureClock(hazard.mtbf, seed, number)).simulate();
}

}  // namespace trainsim::training
