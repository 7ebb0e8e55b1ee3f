// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/schedule/schedule.hpp"

namespace trainsim::schedule {

namespace {

/// A schedule that was written for other counts has thousands of faults; the first few tell as much as all of
/// them.
constexpr std::size_t kMaxListed = 20;
constexpr std::int64_t kMissing = -1;
/// The rules that a missing slot breaks.
constexpr const char* kPassRule = "every micro-batch passes every chunk forward and backward once";
constexpr const char* kWeightRule = "either every backward has a weight slot or none has one";

std::string to_string(const Slot& slot) {
  const char* letter = slot.kind == SlotKind::kForward ? "F" : slot.kind == SlotKind::kBackward ? "B" : "W";
  return std::string(letter) + "(micro-batch " + std::to_string(slot.micro_batch) + ", chunk " +
         std::to_string(slot.chunk) + ")";
}

std::string to_string(const StagedSlot& at) {
  return to_string(at.slot) + " on stage " + std::to_string(at.stage);
}

/// Problems of the field that names the schedule, the first kMaxListed in full and the others as a number.
class ProblemList {
 public:
  void add(const std::string& message) {
    if (problems_.size() < kMaxListed) {
      problems_.push_back({"plan.schedule", message});
    } else {
      ++unlisted_;
    }
  }

  Problems take() {
    if (unlisted_ > 0) {
      problems_.push_back({"plan.schedule", "the schedule has " + std::to_string(unlisted_) +
                                                " more problems of these kinds; cure the first ones"});
    }
    return std::move(problems_);
  }

 private:
  Problems problems_;
  std::int64_t unlisted_ = 0;
};

/// Where every possible slot stands in the order of its stage; kMissing for those that are not there.
class Positions {
 public:
  explicit Positions(const Schedule& schedule)
      : chunks_(schedule.chunks),
        micro_batches_(schedule.micro_batches),
        positions_(static_cast<std::size_t>(3 * schedule.stages * chunks_ * micro_batches_), kMissing) {}

  std::int64_t& operator[](const StagedSlot& at) { return positions_[index(at)]; }
  std::int64_t operator[](const StagedSlot& at) const { return positions_[index(at)]; }

 private:
  std::size_t index(const StagedSlot& at) const {
    const std::int64_t pass = (at.stage * chunks_ + at.slot.chunk) * micro_batches_ + at.slot.micro_batch;
    return static_cast<std::size_t>(3 * pass + static_cast<std::int64_t>(at.slot.kind));
  }

  std::int64_t chunks_;
  std::int64_t micro_batches_;
  std::vector<std::int64_t> positions_;
};

Problems check_shape(const Schedule& schedule) {
  ProblemList problems;
  if (std::min({schedule.stages, schedule.chunks, schedule.micro_batches}) < 1) {
    problems.add("a schedule needs at least one stage, chunk and micro-batch, not " +
                 std::to_string(schedule.stages) + ", " + std::to_string(schedule.chunks) + " and " +
                 std::to_string(schedule.micro_batches));
  } else if (schedule.slots.size() != static_cast<std::size_t>(schedule.stages)) {
    problems.add("the schedule lists slots for " + std::to_string(schedule.slots.size()) +
                 " stages, but the pipeline has " + std::to_string(schedule.stages));
  }
  return problems.take();
}

/// Fills `positions`, and reports slots that are out of range or there twice.
void place_slots(const Schedule& schedule, Positions& positions, ProblemList& problems) {
  for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
    const std::vector<Slot>& order = schedule.slots[stage];
    for (std::size_t i = 0; i < order.size(); ++i) {
      const StagedSlot at{stage, order[i]};
      if (at.slot.micro_batch < 0 || at.slot.micro_batch >= schedule.micro_batches || at.slot.chunk < 0 ||
          at.slot.chunk >= schedule.chunks) {
        problems.add(to_string(at) + " (slot " + std::to_string(i) +
                     ") does not exist; micro-batches go from 0 to " +
                     std::to_string(schedule.micro_batches - 1) + " and chunks from 0 to " +
                     std::to_string(schedule.chunks - 1));
        continue;
      }
      std::int64_t& position = positions[at];
      if (position == kMissing) {
        position = static_cast<std::int64_t>(i);
      } else {
        problems.add(to_string(at) + " runs twice, as slots " + std::to_string(position) + " and " +
                     std::to_string(i) + "; remove one");
      }
    }
  }
}

bool has_weight_slots(const Schedule& schedule) {
  return std::any_of(schedule.slots.begin(), schedule.slots.end(), [](const std::vector<Slot>& order) {
    return std::any_of(order.begin(), order.end(),
                       [](const Slot& slot) { return slot.kind == SlotKind::kWeight; });
  });
}

void find_missing(const Schedule& schedule, const Positions& positions, ProblemList& problems) {
  const bool weights = has_weight_slots(schedule);
  const auto require = [&](const StagedSlot& at, const char* rule) {
    if (positions[at] == kMissing) problems.add(to_string(at) + " is missing; " + rule);
  };
  for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
    for (std::int32_t micro_batch = 0; micro_batch < schedule.micro_batches; ++micro_batch) {
      for (std::int32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
        require({stage, {SlotKind::kForward, micro_batch, chunk}}, kPassRule);
        require({stage, {SlotKind::kBackward, micro_batch, chunk}}, kPassRule);
        if (weights) require({stage, {SlotKind::kWeight, micro_batch, chunk}}, kWeightRule);
      }
    }
  }
}

/// Runs the slots of a complete schedule without time, each as soon as what it depends on has run.
class Progress {
 public:
  Progress(const Schedule& schedule, const Positions& positions)
      : schedule_(schedule), positions_(positions), next_(static_cast<std::size_t>(schedule.stages), 0) {}

  /// Runs as far as possible. Linear in slots: a slot makes at most one other stage look again.
  void run() {
    std::vector<std::int64_t> to_look(next_.size());
    std::iota(to_look.begin(), to_look.end(), 0);
    while (!to_look.empty()) {
      const std::int64_t stage = to_look.back();
      to_look.pop_back();
      for (; !finished(stage) && !blocker(stage); ++next_[stage]) {
        if (const auto waiting = dependent_stage(next_slot(stage))) to_look.push_back(*waiting);
      }
    }
  }

  /// The stages that wait for each other, or "" when all have finished. REQUIRES: run() was called.
  std::string cycle() const {
    std::int64_t stage = 0;
    while (stage < schedule_.stages && finished(stage)) ++stage;
    if (stage == schedule_.stages) return "";
    // A finished stage has run all its slots, so who waits, waits for an unfinished stage, which waits too:
    // following them ends in a circle.
    std::vector<bool> seen(next_.size(), false);
    for (; !seen[stage]; stage = blocker(stage)->stage) seen[stage] = true;
    return describe_cycle(stage);
  }

 private:
  bool finished(std::int64_t stage) const {
    return next_[stage] == static_cast<std::int64_t>(schedule_.slots[stage].size());
  }

  StagedSlot next_slot(std::int64_t stage) const { return {stage, schedule_.slots[stage][next_[stage]]}; }

  bool has_run(const StagedSlot& at) const { return positions_[at] < next_[at.stage]; }

  /// What the next slot of an unfinished stage waits for; nothing when it can run.
  std::optional<StagedSlot> blocker(std::int64_t stage) const {
    for (const auto& needed : dependencies(schedule_, next_slot(stage))) {
      if (needed && !has_run(*needed)) return needed;
    }
    return std::nullopt;
  }

  /// The stage of the slot that takes over the output of a slot, if any.
  std::optional<std::int64_t> dependent_stage(const StagedSlot& at) const {
    if (at.slot.kind == SlotKind::kWeight) return std::nullopt;
    const std::int64_t step = at.slot.kind == SlotKind::kForward ? 1 : -1;
    const std::int64_t place = schedule_.virtual_stage(at.stage, at.slot.chunk) + step;
    if (place < 0 || place >= schedule_.stages * schedule_.chunks) return std::nullopt;
    return schedule_.stage_of(place);
  }

  std::string describe_cycle(std::int64_t first) const {
    std::string text = "stage " + std::to_string(first);
    std::int64_t stage = first;
    do {
      const StagedSlot needed = *blocker(stage);
      if (stage != first) text += ", which";
      text += " waits at " + to_string(next_slot(stage).slot) + " for ";
      text += needed.stage == stage ? "its own " + to_string(needed.slot) : to_string(needed);
      stage = needed.stage;
    } while (stage != first);
    return text;
  }

  const Schedule& schedule_;
  const Positions& positions_;
  /// Per stage, the first slot that has not run.
  std::vector<std::int64_t> next_;
};

}  // namespace

Problems check(const Schedule& schedule) {
  if (Problems shape = check_shape(schedule); !shape.empty()) return shape;
  ProblemList problems;
  Positions positions(schedule);
  place_slots(schedule, positions, problems);
  find_missing(schedule, positions, problems);
  if (Problems incomplete = problems.take(); !incomplete.empty()) return incomplete;

  Progress progress(schedule, positions);
  progress.run();
  if (const std::string cycle = progress.cycle(); !cycle.empty()) {
    problems.add(
        "the schedule deadlocks: " + cycle +
        "; to break the circle, run a slot that is waited for before the slot at which its stage waits");
  }
  return problems.take();
}

}  // namespace trainsim::schedule
