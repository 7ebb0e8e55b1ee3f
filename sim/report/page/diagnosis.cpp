// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include "sim/report/format.hpp"
#include "sim/report/page/parts.hpp"

namespace trainsim::report {

namespace {

using program::Cause;

/// Causes that take less of the step are not worth a finding.
constexpr double kWorthNaming = 0.01;
/// Gains of throughput below this are rounding.
constexpr double kGain = 0.002;
/// How much a change must lower a cause to be advice on it.
constexpr double kLowers = 0.8;
constexpr std::size_t kMostFindings = 5;

double share_of(const Summary& summary, Cause cause) {
  return summary.breakdown[static_cast<std::size_t>(cause)] / summary.step_time;
}

double share_of(const PlanChange& change, Cause cause) {
  return change.breakdown[static_cast<std::size_t>(cause)] / change.step_time;
}

struct CauseText {
  Cause cause;
  const char* name;
  const char* text;
};

constexpr std::array<CauseText, 9> kCauseTexts = {{
    {Cause::kBubble, "Bubble",
     "Stages wait while the pipeline fills and drains, and wherever one stage is slower than the others."},
    {Cause::kTensorCommunication, "Tensor-parallel communication",
     "Every layer ends in collectives of its tensor-parallel group, and compute waits for their results."},
    {Cause::kContextCommunication, "Context-parallel communication",
     "Attention waits for keys, values or their gradients from the ranks that hold other parts of the "
     "sequence."},
    {Cause::kPipelineCommunication, "Pipeline transfers",
     "Stages wait for activations and gradients that are on their way between them."},
    {Cause::kDataCommunication, "Gradient and parameter exchange",
     "Gradients are reduced and parameters gathered over the data-parallel ranks; this is the part that "
     "compute "
     "could not hide."},
    {Cause::kEmbeddingCommunication, "Embedding exchange",
     "The first and the last stage add up the gradients of the embedding that they share."},
    {Cause::kRecompute, "Recomputation",
     "Forward work is done again in backward, so that its activations need not be kept."},
    {Cause::kImbalance, "Imbalance", "Ranks wait for slower members of their groups."},
    {Cause::kLaunch, "Kernel launches",
     "The GPU runs dry and waits for the host: its kernels are shorter than the time to launch them."},
}};

/// "and 1.9 % more tokens per second".
std::string gain_text(const PlanChange& change) {
  const double gain = change.relative_throughput - 1.0;
  if (std::abs(gain) < kGain) return "at the same throughput";
  return "with " + percent(std::abs(gain)) + (gain > 0 ? " more" : " fewer") + " tokens per second";
}

/// The share of a cause in a changed step; for the bubble its ratio, which the result shows.
double measure(const PlanChange& change, Cause cause) {
  return cause == Cause::kBubble ? change.bubble_ratio : share_of(change, cause);
}

/// "X would bring it to 4.1 %, with 3.0 % more tokens per second." for the change that raises throughput most
/// among those that lower a cause and fit; empty if there is none.
std::string best_against(const WhatIf& what_if, Cause cause, double now, bool keeps_batch) {
  const auto helps = [&](const PlanChange& change) {
    return change.keeps_batch == keeps_batch && change.verdict != Verdict::kDoesNotFit &&
           change.relative_throughput > 1.0 + kGain && measure(change, cause) < kLowers * now;
  };
  const auto best = std::find_if(what_if.changes.begin(), what_if.changes.end(), helps);
  if (best == what_if.changes.end()) return "";
  return best->label + " would bring it to " + percent(measure(*best, cause)) + ", " + gain_text(*best) + ".";
}

std::string advice(const WhatIf& what_if, Cause cause, double now) {
  const std::string same_batch = best_against(what_if, cause, now, true);
  const std::string larger_batch = best_against(what_if, cause, now, false);
  if (same_batch.empty() && larger_batch.empty())
    return "No single change that was tried lowers it, fits, and raises throughput.";
  return same_batch + (same_batch.empty() || larger_batch.empty() ? "" : " ") + larger_batch;
}

std::string bubble_text(const Summary& summary) {
  if (!summary.bubble_ratio_theory) return "";
  return " Equal stages with free transfers would have " + percent(*summary.bubble_ratio_theory) + ".";
}

Finding finding_of(const Summary& summary, const WhatIf& what_if, const CauseText& text) {
  const double share = share_of(summary, text.cause);
  if (text.cause == Cause::kBubble) {
    return {text.name, percent(summary.bubble_ratio), share, text.text + bubble_text(summary),
            advice(what_if, text.cause, summary.bubble_ratio)};
  }
  return {text.name, percent(share), share, text.text, advice(what_if, text.cause, share)};
}

/// How well kernels use the GPU while they run.
Finding kernel_finding(const Summary& summary, const WhatIf& what_if) {
  const Seconds computing = (share_of(summary, Cause::kForward) + share_of(summary, Cause::kBackward) +
                             share_of(summary, Cause::kOptimizer)) *
                            summary.step_time;
  const Seconds arithmetic =
      summary.model_flops / (static_cast<double>(summary.plan.gpus) * summary.peak_flops);
  Finding finding{
      "Kernels", percent(arithmetic / computing) + " of peak", (computing - arithmetic) / summary.step_time,
      "While GPUs compute they reach this share of their dense peak; the rest is memory traffic, tiles "
      "that do not fill the GPU, and the optimizer.",
      ""};
  const auto most = std::min_element(
      what_if.kernels.begin(), what_if.kernels.end(),
      [](const KernelGain& a, const KernelGain& b) { return a.if_twice_as_fast < b.if_twice_as_fast; });
  if (most != what_if.kernels.end()) {
    finding.advice = "The kernel that matters most is '" + most->name +
                     "': were it twice as fast, the step would be " +
                     percent(1.0 - most->if_twice_as_fast / what_if.step_time) + " shorter.";
  }
  return finding;
}

Finding memory_finding(const Summary& summary, const WhatIf& what_if) {
  const RankSummary& rank = fullest_rank(summary);
  const Bytes available = summary.memory_capacity - summary.memory_reserve;
  const auto largest = static_cast<std::size_t>(
      std::max_element(rank.memory_at_peak.begin(), rank.memory_at_peak.end()) - rank.memory_at_peak.begin());
  Finding finding{"Memory", to_string(summary.verdict), 0,
                  "Stage " + std::to_string(rank.stage) + " needs most: " + gib(summary.peak_memory) +
                      " of " + gib(available) + " usable; " +
                      verdict_reason(summary.peak_memory, summary.peak_reserved, available) +
                      ". The largest part is " +
                      words(program::to_string(static_cast<program::MemoryCategory>(largest))) + ", " +
                      gib(rank.memory_at_peak[largest]) + ".",
                  ""};
  if (summary.fits) return finding;
  const auto fits =
      std::find_if(what_if.changes.begin(), what_if.changes.end(),
                   [](const PlanChange& change) { return change.verdict != Verdict::kDoesNotFit; });
  finding.advice =
      fits == what_if.changes.end()
          ? "No single change that was tried makes it fit; `trainsim memory` tries several together."
          : fits->label + " would fit, " + gain_text(*fits) + ".";
  return finding;
}

/// "tensor-parallel communication" from "Tensor-parallel communication".
std::string lower_case(std::string name) {
  name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
  return name;
}

std::string headline(const Summary& summary, const std::vector<Finding>& losses) {
  const double computing = share_of(summary, Cause::kForward) + share_of(summary, Cause::kBackward) +
                           share_of(summary, Cause::kOptimizer);
  std::string text = "A step takes " + duration(summary.step_time) + ". GPUs spend " + percent(computing) +
                     " of it on forward, backward and optimizer; ";
  if (losses.empty()) return text + "nothing else takes more than 1 %.";
  const Finding& largest = losses.front();
  return text + "the largest loss is " + lower_case(largest.name) + ", " + percent(largest.share) + ".";
}

}  // namespace

Diagnosis diagnose(const Summary& summary, const WhatIf& what_if) {
  Diagnosis diagnosis;
  for (const CauseText& text : kCauseTexts) {
    if (share_of(summary, text.cause) >= kWorthNaming)
      diagnosis.findings.push_back(finding_of(summary, what_if, text));
  }
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.share > b.share; });
  if (diagnosis.findings.size() > kMostFindings) diagnosis.findings.resize(kMostFindings);
  diagnosis.headline = headline(summary, diagnosis.findings);
  if (summary.plan.profile.empty()) diagnosis.findings.push_back(kernel_finding(summary, what_if));
  diagnosis.findings.push_back(memory_finding(summary, what_if));
  return diagnosis;
}

}  // namespace trainsim::report
