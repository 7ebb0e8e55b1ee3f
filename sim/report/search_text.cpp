// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "sim/report/format.hpp"
#include "sim/report/search.hpp"
#include "sim/search/candidate.hpp"

namespace trainsim::report {

namespace {

constexpr std::size_t kTextWidth = 110;
/// Where the explanation of a row begins.
constexpr std::size_t kIndent = 6;

/// "+3.1 %", "-0.52 %", or "" for the plan that others are compared with.
std::string difference(double relative) {
  const double change = relative - 1.0;
  // What percent() would show as a row of noughts.
  if (change < 1e-6 && change > -1e-6) return "+0 %";
  return (change > 0 ? "+" : "") + percent(change);
}

std::string memory_text(const PlanResult& result) {
  const char* mark = result.verdict == Verdict::kFits         ? ""
                     : result.verdict == Verdict::kBorderline ? "~"
                                                              : "!";
  return mark + gib(result.peak_memory);
}

std::string head_row(bool with_gpus) {
  return std::string(with_gpus ? "   GPUs" : "") + pad_left("step time", 12) + pad_left("", 9) +
         pad_left("MFU", 9) + pad_left("bubble", 9) + pad_left("memory", 12) + "   TP  PP VPP   DP  MB" +
         "  " + pad_right("schedule", 13) + pad_right("sharding", 10) + "recompute\n";
}

std::string cells(const PlanResult& result, bool with_gpus, bool is_reference) {
  const plan::ParallelPlan& plan = result.plan;
  std::string text = with_gpus ? pad_left(std::to_string(plan.gpus), 7) : "";
  text += pad_left(duration(result.step_time), 12);
  text += pad_left(is_reference ? "" : difference(result.relative), 9);
  text += pad_left(percent(result.mfu), 9) + pad_left(percent(result.bubble_ratio), 9);
  text += pad_left(memory_text(result), 12);
  text += pad_left(std::to_string(plan.tensor_parallel), 5) +
          pad_left(std::to_string(plan.pipeline_parallel), 4) +
          pad_left(std::to_string(plan.virtual_pipeline), 4) +
          pad_left(std::to_string(plan.data_parallel), 5) +
          pad_left(std::to_string(plan.micro_batch_size), 4);
  text += "  " + pad_right(plan.pipeline_parallel > 1 ? plan::to_string(plan.schedule) : "-", 13) +
          pad_right(plan::to_string(plan.sharding), 10) + search::to_string(plan.recompute) +
          (plan.context_parallel > 1 ? "  CP" + std::to_string(plan.context_parallel) : "") +
          (plan.expert_parallel > 1 ? "  EP" + std::to_string(plan.expert_parallel) : "") + "\n";
  return text;
}

std::string reason_line(const std::string& reason) {
  if (reason.empty()) return "";
  return std::string(kIndent, ' ') + wrap(reason, kTextWidth - kIndent, kIndent) + "\n";
}

std::string objective_words(const SearchReport& report) {
  switch (report.objective) {
    case Objective::kStepTime:
      return "smallest step time";
    case Objective::kCost:
      return report.price ? "lowest cost at $" + number(*report.price) + " per GPU-hour" : "fewest GPU-hours";
    case Objective::kGpus:
      break;
  }
  return "fewest GPUs";
}

std::string cost_words(const SearchReport& report, const PlanResult& plan) {
  if (report.objective != Objective::kCost && !report.price) return "";
  const double hours = gpu_hours(plan);
  std::string text = number(hours) + " GPU-hours a step";
  if (report.price) text += ", $" + number(hours * *report.price);
  return text;
}

bool any_borderline(const SearchReport& report) {
  return std::any_of(report.plans.begin(), report.plans.end(),
                     [](const PlanResult& each) { return each.verdict == Verdict::kBorderline; });
}

std::string left_out(const std::string& title, const std::vector<LeftOut>& list) {
  std::string text;
  for (const LeftOut& each : list) {
    if (text.empty()) text = "\n" + title + "\n";
    text.append("  ").append(pad_left(std::to_string(each.count), 7)).append("  ");
    text.append(wrap(each.reason, kTextWidth - 11, 11)).append("\n");
  }
  return text;
}

std::string plan_table(const SearchReport& report) {
  const bool with_gpus = std::any_of(report.plans.begin(), report.plans.end(), [&](const PlanResult& each) {
    return each.plan.gpus != report.plans.front().plan.gpus ||
           (report.own && each.plan.gpus != report.own->plan.gpus);
  });
  std::string text = "    #" + head_row(with_gpus);
  for (std::size_t i = 0; i < report.plans.size(); ++i) {
    const PlanResult& plan = report.plans[i];
    text.append(pad_left(std::to_string(i + 1), 5)).append(cells(plan, with_gpus, i == 0));
    std::string reason = plan.why;
    if (const std::string cost = cost_words(report, plan); !cost.empty())
      reason.append(reason.empty() ? "" : "; ").append(cost);
    text += reason_line(reason);
  }
  if (report.own) {
    text += "yours" + cells(*report.own, with_gpus, false);
    text += reason_line(report.own->why);
  }
  if (any_borderline(report)) text += "~ borderline: fits, but by less than memory is known to\n";
  if (report.own && report.own->verdict == Verdict::kDoesNotFit) text += "! does not fit into memory\n";
  if (report.own && !report.own_keeps_limits) text += "Yours breaks a limit.\n";
  return text;
}

std::string command_line(const SearchReport& report) {
  const std::vector<std::string>& overrides = report.plans.front().overrides;
  if (overrides.empty()) return "\nThe best is the configuration's own plan.\n";
  std::string text;
  for (const std::string& assignment : overrides) {
    const char* quote = assignment.find_first_of(" {}[]") == std::string::npos ? "" : "'";
    text.append(" --set ").append(quote).append(assignment).append(quote);
  }
  // In one line, so that it can be copied.
  return "\nTo run the best, add to the command line of `trainsim run`:\n " + text + "\n";
}

}  // namespace

std::string to_text(const SearchReport& report) {
  std::string text = report.name + ": plans with the " + objective_words(report) + ", " + report.model +
                     " on " + report.cluster + ", global batch " + std::to_string(report.global_batch_size) +
                     "\n";
  for (const std::string& limit : report.limits) text.append("  limit ").append(limit).append("\n");
  if (!report.complete)
    text += "\nINCOMPLETE: interrupted. These are the best found until then; better ones may exist.\n";
  text += "\n";
  if (report.plans.empty()) {
    text += "No plan was found that is legal, fits into memory and keeps the limits.\n";
  } else {
    text += plan_table(report) + command_line(report);
  }
  text += "\nSearched: " + std::to_string(report.considered) + " combinations, " +
          std::to_string(report.legal) + " of them legal; " + std::to_string(report.ranked) +
          " ran without contention, " + std::to_string(report.confirmed) + " were simulated in full\n";
  text += left_out("Left out", report.rejected);
  return text +
         left_out("Illegal, by the first rule that they break (with the first of each)", report.illegal);
}

std::string to_text(const NeighbourReport& report) {
  std::string text = report.name + ": " + verdict_on(report) + "\n\n";
  text += "     " + head_row(false) + "yours" + cells(report.own, false, true);
  bool fitting = true;
  for (const NeighbourResult& neighbour : report.neighbours) {
    if (fitting && neighbour.result.verdict == Verdict::kDoesNotFit) {
      text += "\nThese do not fit into memory\n";
      fitting = false;
    }
    text.append("     ").append(cells(neighbour.result, false, false));
    std::string reason = neighbour.change;
    text.append(reason_line(reason.append(": ").append(neighbour.result.why)));
  }
  const bool borderline =
      std::any_of(report.neighbours.begin(), report.neighbours.end(),
                  [](const NeighbourResult& each) { return each.result.verdict == Verdict::kBorderline; });
  if (borderline || report.own.verdict == Verdict::kBorderline)
    text += "~ borderline: fits, but by less than memory is known to\n";
  return text + "\n" + std::to_string(report.neighbours.size()) + " neighbours simulated, " +
         std::to_string(report.illegal) + " moves lead to no legal plan\n";
}

}  // namespace trainsim::report
