// SPDX-License-Identifier: Apache-2.0
#include "sim/report/notes.hpp"

#include <algorithm>
#include <cmath>

#include "sim/report/csv_cells.hpp"
#include "sim/report/format.hpp"
#include "sim/report/groups.hpp"
#include "sim/report/memory.hpp"
#include "sim/report/network.hpp"
#include "sim/training/duration_text.hpp"

namespace trainsim::report {

namespace {

using program::Cause;
using program::TrafficKind;

Seconds of(const Summary& summary, Cause cause) {
  return summary.breakdown[static_cast<std::size_t>(cause)];
}

/// Differences from the closed form below this are rounding and not worth a sentence.
constexpr double kNoticeable = 5e-4;
/// Goodput that is worth a sentence.
constexpr double kNoticeableGoodput = 0.005;

std::string closed_form(const Summary& summary) {
  const plan::ParallelPlan& plan = summary.plan;
  const std::string p = std::to_string(plan.pipeline_parallel);
  const std::string m = std::to_string(plan.micro_batches());
  if (plan.splits_backward())
    return "(p-1)/(3m+p-1) with p=" + p + ", m=" + m +
           ", and forward, input gradients and weight gradients of equal length";
  if (plan.virtual_pipeline == 1) return "(p-1)/(m+p-1) with p=" + p + ", m=" + m;
  return "(p-1)/(v·m+p-1) with p=" + p + ", m=" + m + ", v=" + std::to_string(plan.virtual_pipeline);
}

/// Names what separates the simulated bubble from the closed form: stages that are not equal, and transfers.
std::string bubble_note(const Summary& summary) {
  if (!summary.bubble_ratio_theory) {
    return "Bubble " + percent(summary.bubble_ratio) + "; " + plan::to_string(summary.plan.schedule) +
           " has no closed form with as few as " + std::to_string(summary.plan.micro_batches()) +
           " micro-batches on " + std::to_string(summary.plan.pipeline_parallel) + " stages.";
  }
  const double theory = *summary.bubble_ratio_theory;
  std::string text = "Bubble " + percent(summary.bubble_ratio) +
                     "; equal stages with free transfers would give " + percent(theory) + ", " +
                     closed_form(summary) + ".";
  if (std::abs(summary.bubble_ratio - theory) < kNoticeable) return text + " They agree.";
  const auto by_busy = [](const RankSummary& a, const RankSummary& b) { return a.busy < b.busy; };
  const RankSummary& slowest = *std::max_element(summary.ranks.begin(), summary.ranks.end(), by_busy);
  double mean = 0;
  for (const RankSummary& rank : summary.ranks) {
    mean += rank.busy * static_cast<double>(rank.represents) / static_cast<double>(summary.world_size);
  }
  if (summary.bubble_ratio < theory && summary.plan.splits_backward())
    return text + " Neither the three nor the stages are equally long here.";
  if (summary.bubble_ratio < theory) return text + " Unequal stages make filling and draining shorter here.";
  text += " The difference:";
  const double excess = slowest.busy / mean - 1.0;
  if (excess > kNoticeable) {
    text += " stage " + std::to_string(slowest.stage) + " works " + percent(excess) + " longer than the mean";
    if (slowest.slowdown > 1.0) {
      text += " (rank " + std::to_string(slowest.rank) + " is declared slow)";
    } else if (slowest.stage == summary.plan.pipeline_parallel - 1) {
      text += " (it holds the head)";
    } else if (slowest.stage == 0) {
      text += " (it holds the embedding)";
    }
    text += " and the others wait for it;";
  }
  return text + " exposed pipeline transfers take " +
         percent(of(summary, Cause::kPipelineCommunication) / summary.step_time) + " of the step.";
}

std::string memory_note(const Summary& summary) {
  const RankSummary& rank = fullest_rank(summary);
  const auto largest = static_cast<std::size_t>(
      std::max_element(rank.memory_at_peak.begin(), rank.memory_at_peak.end()) - rank.memory_at_peak.begin());
  return "Memory peaks on stage " + std::to_string(rank.stage) + " " + peak_words(rank.peak_at) +
         "; the largest part is " + words(program::to_string(static_cast<program::MemoryCategory>(largest))) +
         " with " + gib(rank.memory_at_peak[largest]) + ".";
}

/// What is assumed to be faster than it is modelled: "matmul 2 times, norm 1.5 times".
std::string assumed_speedups(const OpSpeedups& speedups) {
  std::string text;
  for (const OpClass op : kAllOpClasses) {
    if (speedups.of(op) == 1.0) continue;
    if (!text.empty()) text += ", ";
    text += to_string(op);
    text += " ";
    text += exact(speedups.of(op));
    text += " times";
  }
  return text;
}

std::string fewer_bubbles(const Summary& summary) {
  const plan::ParallelPlan& plan = summary.plan;
  const auto p = static_cast<double>(plan.pipeline_parallel);
  // What a micro-batch consists of, each of which is as long as a stage lags behind the one before.
  const std::int64_t parts = plan.splits_backward() ? 3 : plan.virtual_pipeline;
  const auto vm = static_cast<double>(parts * plan.micro_batches());
  return "Twice the micro-batches would bring the closed-form bubble from " +
         percent((p - 1) / (vm + p - 1)) + " to " + percent((p - 1) / (2 * vm + p - 1)) + ".";
}

}  // namespace

std::vector<std::string> explain(const Summary& summary) {
  std::vector<std::string> notes;
  if (!summary.fits) {
    notes.push_back("Does not fit: the fullest rank needs " + gib(summary.peak_memory) + " and the GPU has " +
                    gib(summary.memory_capacity) + " less " + gib(summary.memory_reserve) + " reserve; " +
                    misfit(summary) + ".");
    for (const MemoryChange& change : summary.changes)
      notes.push_back("Would help: " + change_text(change) + ".");
  }
  if (summary.plan.pipeline_parallel > 1) {
    notes.push_back(bubble_note(summary));
    if (summary.bubble_ratio_theory.value_or(0.0) > 0.05) notes.push_back(fewer_bubbles(summary));
  }
  if (summary.plan.op_speedups.any()) {
    notes.push_back("Kernels are assumed to be as many times as fast as they are modelled: " +
                    assumed_speedups(summary.plan.op_speedups) + " (op.NAME.speedup).");
  }
  const Seconds tensor = of(summary, Cause::kTensorCommunication);
  if (tensor > 0.05 * summary.step_time) {
    notes.push_back("Tensor-parallel communication that compute waits for takes " +
                    percent(tensor / summary.step_time) + " of the step" +
                    limit_text(summary, TrafficKind::kTensor) + ".");
  }
  const Seconds context = of(summary, Cause::kContextCommunication);
  if (context > 0.02 * summary.step_time) {
    notes.push_back("Context-parallel communication (" + plan::to_string(summary.plan.context_communication) +
                    ") that attention waits for takes " + percent(context / summary.step_time) +
                    " of the step" + limit_text(summary, TrafficKind::kContext) + ".");
  }
  const Seconds experts = of(summary, Cause::kExpertCommunication);
  if (experts > 0.05 * summary.step_time) {
    notes.push_back("The exchange of tokens between experts (all-to-all), which compute waits for, takes " +
                    percent(experts / summary.step_time) + " of the step" +
                    limit_text(summary, TrafficKind::kExpert) + ".");
  }
  const Seconds data = of(summary, Cause::kDataCommunication);
  if (data > 0.02 * summary.step_time) {
    notes.push_back("Gradient and parameter exchange that is not hidden takes " +
                    percent(data / summary.step_time) + " of the step" +
                    limit_text(summary, TrafficKind::kData) + ".");
  }
  if (const std::string contention = contention_note(summary); !contention.empty()) {
    notes.push_back(contention);
  }
  if (summary.launch_bound_share > 0.05) {
    notes.push_back("Limited by kernel launches: for " + percent(summary.launch_bound_share) +
                    " of the step the GPU waits for the host; larger micro-batches, less tensor parallelism, "
                    "software.launch: cuda-graph or more fusion would help.");
  }
  if (summary.clock_share < 1.0) {
    notes.push_back("Limited to " + number(summary.power_limit) + " of its " + number(summary.rated_power) +
                    " W, a GPU multiplies at " + percent(summary.clock_share) +
                    " of its rate (cube law; a guess for loads that the rated power does not hold back).");
  }
  notes.push_back(memory_note(summary));
  return notes;
}

std::vector<std::string> training_notes(const training::TrainingRun& run) {
  if (!run.failures || !run.failures->closed_form) return {};
  const training::ClosedForm& known = *run.failures->closed_form;
  if (known.goodput_at_daly - known.goodput < kNoticeableGoodput) return {};
  const bool seldom = known.daly_interval < run.checkpoint->interval;
  return {"Checkpoints every " + training::duration_text(run.checkpoint->interval) + " are too " +
          (seldom ? "seldom" : "often") + ": every " + training::duration_text(known.daly_interval) +
          " would raise goodput from " + percent(known.goodput) + " to " + percent(known.goodput_at_daly) +
          " (closed form)."};
}

}  // namespace trainsim::report
