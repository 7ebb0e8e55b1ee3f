// SPDX-License-Identifier: Apache-2.0
// What holds for every schedule that the builders make.
#include <algorithm>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/schedule/schedule.hpp"

namespace trainsim::schedule {
namespace {

/// A schedule of any family, with up to 12 stages, 4 chunks and 40 micro-batches.
Schedule any_schedule() {
  const std::int64_t p = *rc::gen::inRange<std::int64_t>(1, 13);
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return gpipe(p, *rc::gen::inRange<std::int64_t>(1, 41));
    case 1:
      return one_f_one_b(p, *rc::gen::inRange<std::int64_t>(1, 41));
    case 2:
      return zero_bubble_h1(p, *rc::gen::inRange<std::int64_t>(1, 41));
    case 3:
      return zero_bubble_h2(p, *rc::gen::inRange<std::int64_t>(1, 41));
    default:
      return interleaved(p, *rc::gen::inRange<std::int64_t>(1, 5),
                         p * *rc::gen::inRange<std::int64_t>(1, 40 / p + 1));
  }
}

/// The order of any stage of a schedule.
std::vector<Slot>& any_order(Schedule& schedule) {
  return schedule.slots[*rc::gen::inRange<std::size_t>(0, schedule.slots.size())];
}

RC_GTEST_PROP(Schedules, AreCompleteAndFreeOfDeadlock, ()) {
  RC_ASSERT(check(any_schedule()).empty());
}

// All slots of a micro-batch on a stage depend on each other through the chunks, so their order is the only
// one.
RC_GTEST_PROP(Schedules, DeadlockWhenDependentSlotsAreSwapped, ()) {
  Schedule schedule = any_schedule();
  std::vector<Slot>& order = any_order(schedule);
  const auto micro_batch =
      static_cast<std::int32_t>(*rc::gen::inRange<std::int64_t>(0, schedule.micro_batches));
  std::vector<std::size_t> dependent;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].micro_batch == micro_batch) dependent.push_back(i);
  }
  const std::size_t second = *rc::gen::inRange<std::size_t>(1, dependent.size());
  const std::size_t first = *rc::gen::inRange<std::size_t>(0, second);
  std::swap(order[dependent[first]], order[dependent[second]]);
  const Problems problems = check(schedule);
  RC_ASSERT(problems.size() == 1U);
  RC_ASSERT(problems.front().message.find("the schedule deadlocks: stage ") == 0U);
}

RC_GTEST_PROP(Schedules, AreIncompleteWithoutAnyOneSlot, ()) {
  Schedule schedule = any_schedule();
  std::vector<Slot>& order = any_order(schedule);
  order.erase(order.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(order)));
  const Problems problems = check(schedule);
  RC_ASSERT(problems.size() == 1U);
  RC_ASSERT(problems.front().message.find(" is missing; ") != std::string::npos);
}

RC_GTEST_PROP(Schedules, MayNotRunAnySlotTwice, ()) {
  Schedule schedule = any_schedule();
  std::vector<Slot>& order = any_order(schedule);
  const Slot repeated = *rc::gen::elementOf(order);
  order.insert(order.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(order) + 1), repeated);
  const Problems problems = check(schedule);
  RC_ASSERT(problems.size() == 1U);
  RC_ASSERT(problems.front().message.find(" runs twice, ") != std::string::npos);
}

RC_GTEST_PROP(Schedules, HoldAtLeastOneAndAtMostAllMicroBatches, ()) {
  const Schedule schedule = any_schedule();
  for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
    const double peak = peak_in_flight(schedule, stage);
    RC_ASSERT(peak >= 1.0);
    RC_ASSERT(peak <= static_cast<double>(schedule.micro_batches));
  }
}

}  // namespace
}  // namespace trainsim::schedule
