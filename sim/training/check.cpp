// SPDX-License-Identifier: Apache-2.0
#include "sim/training/check.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/spelling.hpp"

namespace trainsim::training {

namespace {

/// Batch sizes of a ramp, each of which is simulated.
constexpr std::int64_t kMostIncrements = 1000;

std::string text(std::int64_t number) {
  return std::to_string(number);
}

void check_multiple(const std::string& field, std::int64_t sequences, const RunFacts& facts,
                    Problems& problems) {
  if (sequences % facts.batch_unit == 0) return;
  problems.push_back({field, text(sequences) + " is not a multiple of " + facts.batch_reason + " = " +
                                 text(facts.batch_unit) +
                                 "; nearest legal: " + nearest_multiples(sequences, facts.batch_unit)});
}

/// Increments that lead from the start to the full batch, few enough, and legal themselves.
std::string legal_increments(const BatchRamp& ramp, const RunFacts& facts) {
  std::vector<std::int64_t> legal = divisors(facts.full.sequences - ramp.start);
  std::erase_if(legal, [&](std::int64_t each) {
    return each % facts.batch_unit != 0 || (facts.full.sequences - ramp.start) / each > kMostIncrements;
  });
  return legal.empty() ? "" : "; legal here: " + join_numbers(legal);
}

void check_ramp(const TrainingSpec& spec, const RunFacts& facts, Problems& problems) {
  const BatchRamp& ramp = *spec.ramp;
  const std::string section = "run.rampup_batch_size.";
  check_multiple(section + "start", ramp.start, facts, problems);
  check_multiple(section + "increment", ramp.increment, facts, problems);
  const std::int64_t way = facts.full.sequences - ramp.start;
  if (way <= 0) {
    problems.push_back(
        {section + "start", text(ramp.start) + " is not below plan.global_batch_size " +
                                text(facts.full.sequences) +
                                ", to which the batch is to grow; lower it, or remove the ramp"});
    return;
  }
  if (!problems.empty()) return;
  const std::string range =
      " from " + text(ramp.start) + " to plan.global_batch_size " + text(facts.full.sequences);
  if (way % ramp.increment != 0) {
    problems.push_back({section + "increment", text(ramp.increment) + " does not divide the " + text(way) +
                                                   range + legal_increments(ramp, facts)});
    return;
  }
  if (way / ramp.increment > kMostIncrements) {
    problems.push_back({section + "increment", "makes " + text(way / ramp.increment) + " batch sizes" +
                                                   range + ", each of which is simulated; at most " +
                                                   text(kMostIncrements) + legal_increments(ramp, facts)});
    return;
  }
  const std::int64_t samples = total_samples(batch_stages(spec, facts.full));
  if (ramp.samples < samples) return;
  problems.push_back(
      {section + "samples", "the run ends after " + text(samples) +
                                " sequences, before the batch has its full size; write less, or "
                                "lengthen the run"});
}

void check_interval(const TrainingSpec& spec, const RunFacts& facts, Problems& problems) {
  // Without a legal ramp tokens say nothing of steps.
  if (!spec.steps && !problems.empty()) return;
  const std::int64_t steps = spec.steps ? *spec.steps : total_steps(batch_stages(spec, facts.full));
  if (*spec.checkpoint->interval_steps <= steps) return;
  problems.push_back({"run.checkpoint.interval",
                      text(*spec.checkpoint->interval_steps) + " steps are more than the " + text(steps) +
                          " of the run, so that nothing is saved before its end; write fewer"});
}

/// Sequences are counted in 64 bits.
void check_length(const TrainingSpec& spec, const RunFacts& facts, Problems& problems) {
  constexpr double most = 4e18;
  if (!spec.steps || static_cast<double>(*spec.steps) * static_cast<double>(facts.full.sequences) < most)
    return;
  problems.push_back({"run.steps", text(*spec.steps) + " steps of " + text(facts.full.sequences) +
                                       " sequences are more than can be counted; write fewer"});
}

}  // namespace

Problems check(const TrainingSpec& spec, const RunFacts& facts) {
  Problems problems;
  check_length(spec, facts, problems);
  if (!problems.empty()) return problems;
  if (spec.ramp) check_ramp(spec, facts, problems);
  if (spec.checkpoint && spec.checkpoint->interval_steps) check_interval(spec, facts, problems);
  return problems;
}

}  // namespace trainsim::training
