// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/report/format.hpp"
#include "sim/report/groups.hpp"
#include "sim/report/network.hpp"
#include "sim/report/placement.hpp"
#include "sim/report/rows.hpp"
#include "sim/report/sensitivity.hpp"
#include "sim/report/training.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::report {

namespace {

using program::Cause;

constexpr std::size_t kKernelRows = 8;
/// Share of the step time that a constant must move to be named.
constexpr double kSmallEffect = 0.005;
/// Stages shown before the table is cut in the middle.
constexpr std::size_t kStageRows = 16;

/// A row whose value is aligned already.
std::string table_row(const std::string& label, const std::string& value) {
  return "  " + pad_right(label, kLabelWidth) + value + "\n";
}

std::string bullet(const std::string& text) {
  return "  - " + wrap(text, kTextWidth - 4, 4) + "\n";
}

std::string plan_line(const Summary& summary) {
  const plan::ParallelPlan& plan = summary.plan;
  std::string text = "TP" + std::to_string(plan.tensor_parallel) + (plan.sequence_parallel ? "+SP" : "") +
                     " PP" + std::to_string(plan.pipeline_parallel);
  if (plan.virtual_pipeline > 1) text += " (" + std::to_string(plan.virtual_pipeline) + " chunks)";
  if (plan.context_parallel > 1)
    text += " CP" + std::to_string(plan.context_parallel) + " (" +
            plan::to_string(plan.context_communication) + ")";
  if (summary.model.experts.active()) {
    text += " EP" + std::to_string(plan.expert_parallel);
    if (plan.expert_tensor() != plan.tensor_parallel) text += " ETP" + std::to_string(plan.expert_tensor());
  }
  text += " DP" + std::to_string(plan.data_parallel) + ", " + plan::to_string(plan.schedule) + ", " +
          std::to_string(plan.micro_batches()) + " micro-batches of " +
          std::to_string(plan.micro_batch_size) + ", global batch " + std::to_string(plan.global_batch_size);
  return text;
}

/// ", optimizer on the host's cpu and parameters on nvme".
std::string offload_words(const plan::Offload& offload) {
  using plan::OffloadTarget;
  if (!offload.active()) return "";
  std::string words;
  if (offload.optimizer != OffloadTarget::kNone) words = "optimizer on " + plan::to_string(offload.optimizer);
  if (offload.parameters != OffloadTarget::kNone) {
    words +=
        (words.empty() ? "" : " and ") + std::string("parameters on ") + plan::to_string(offload.parameters);
  }
  return " with " + words;
}

std::string precision_words(const plan::ParallelPlan& plan) {
  if (!plan.uses_fp8()) return plan::to_string(plan.precision);
  return "fp8 (" + plan::to_string(plan.fp8.recipe) + (plan.fp8.parameters ? ", weights too)" : ")");
}

/// ", activations of 4 layers on cpu".
std::string activation_words(const plan::ParallelPlan& plan) {
  if (plan.offloaded_layers == 0) return "";
  return ", activations of " + std::to_string(plan.offloaded_layers) + " layers on cpu";
}

/// "full (only 2 layers per chunk of 3 micro-batches in flight)".
std::string recompute_words(const plan::Recompute& recompute) {
  std::string words = plan::to_string(recompute.granularity);
  if (recompute.partial_micro_batches == 0) return words;
  const std::string part = recompute.partial_layers == 0
                               ? "nothing"
                               : "only " + std::to_string(recompute.partial_layers) + " layers per chunk";
  return words + " (" + part + " of " + std::to_string(recompute.partial_micro_batches) +
         " micro-batches in flight)";
}

std::string settings_line(const Summary& summary) {
  const plan::ParallelPlan& plan = summary.plan;
  return "recompute " + recompute_words(plan.recompute) + ", sharding " + plan::to_string(plan.sharding) +
         (plan.is_hybrid() ? " in groups of " + std::to_string(plan.shard_ranks()) : "") +
         offload_words(plan.offload) + activation_words(plan) + ", " + precision_words(plan) + " with " +
         (plan.gradient_bytes == 4 ? "fp32" : "2-byte") + " gradients, " +
         model::to_string(summary.model.attention) + " attention, " + plan::to_string(plan.launch) +
         " launches, " + plan::to_string(plan.fusion) + " fusion";
}

std::string head(const Summary& summary) {
  std::string text = summary.name;
  if (!summary.description.empty()) text = wrap(text + ": " + summary.description, kTextWidth - 2, 2);
  text += "\n";
  const bool experts = summary.model.experts.active();
  text += text_row("model",
                   summary.model.name + ", " + count(summary.parameters) + " parameters" +
                       (experts ? " (" + count(model::active_parameters(summary.model)) + " active)" : "") +
                       ", sequence " + std::to_string(summary.model.sequence_length));
  text += text_row("cluster", std::to_string(summary.plan.gpus) + " x " + summary.gpu_name + " (" +
                                  summary.cluster_name + ")");
  text += text_row("plan", plan_line(summary));
  return text + text_row("", settings_line(summary));
}

std::string verdict(const Summary& summary) {
  const Bytes available = summary.memory_capacity - summary.memory_reserve;
  const std::string reason = verdict_reason(summary.peak_memory, summary.peak_reserved, available);
  switch (summary.verdict) {
    case Verdict::kFits:
      return "fits, " + reason + "; with the allocator's cache " + gib(summary.peak_reserved) +
             retries_text(summary);
    case Verdict::kBorderline:
      return "BORDERLINE, " + reason + retries_text(summary);
    case Verdict::kDoesNotFit:
      break;
  }
  return "DOES NOT FIT, " + misfit(summary);
}

std::string result(const Summary& summary) {
  std::string text = "\nResult of one training step\n";
  text += text_row("step time", duration(summary.step_time));
  text += text_row("throughput", count(summary.tokens_per_second) + " tokens/s, " +
                                     number(summary.tokens_per_second_per_gpu) + " per GPU, " +
                                     number(summary.samples_per_second) + " sequences/s");
  text += text_row("MFU / HFU", percent(summary.mfu) + " / " + percent(summary.hfu) + " of " +
                                    number(summary.peak_flops / kTera) + " TFLOP/s dense " +
                                    plan::to_string(summary.plan.precision) + " peak (" +
                                    number(summary.model_tflops_per_gpu) + " / " +
                                    number(summary.hardware_tflops_per_gpu) + " TFLOP/s per GPU)");
  text += text_row("bubble ratio", percent(summary.bubble_ratio) +
                                       (summary.bubble_ratio_theory
                                            ? " (closed form " + percent(*summary.bubble_ratio_theory) + ")"
                                            : ""));
  text += text_row("scaling efficiency", percent(summary.scaling_efficiency) + " of " +
                                             std::to_string(summary.plan.gpus) +
                                             " GPUs without communication, bubble or recomputation");
  text +=
      text_row("peak memory", gib(summary.peak_memory) + " of " + gib(summary.memory_capacity) + " less " +
                                  gib(summary.memory_reserve) + " reserve: " + verdict(summary));
  if (summary.host_memory > 0) {
    text += text_row("host memory", gib(summary.host_memory) + " of " + gib(summary.host_memory_capacity) +
                                        " of the fullest node, for what is offloaded");
  }
  return text;
}

std::string breakdown(const Summary& summary) {
  std::string text = "\nWhere the step goes (mean over ranks)\n";
  for (std::size_t c = 0; c < summary.breakdown.size(); ++c) {
    const Seconds seconds = summary.breakdown[c];
    // Too little to show among rows of this precision.
    if (seconds < 1e-5 * summary.step_time) continue;
    text += table_row(words(program::to_string(static_cast<Cause>(c))),
                      pad_left(duration(seconds), 10) + pad_left(percent(seconds / summary.step_time), 9));
  }
  return text;
}

std::string kernel_table(const Summary& summary) {
  std::string text = "\nLargest kernels (mean over ranks)\n";
  const std::size_t shown = std::min(kKernelRows, summary.kernels.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const KernelShare& kernel = summary.kernels[i];
    text += "  " + pad_right(kernel.name, 40) + pad_left(duration(kernel.seconds), 10) +
            pad_left(percent(kernel.seconds / summary.step_time), 9) + "  " + kernel.kind + "\n";
  }
  return text;
}

/// What of a constant's effect a reader needs: "-3.1 % to +4.2 %".
std::string effect_text(const ConstantEffect& constant, Seconds step_time) {
  const auto share = [step_time](Seconds time) {
    const double change = time / step_time - 1.0;
    return (change > 0 ? "+" : "") + percent(change);
  };
  return share(constant.step_time_low) + " to " + share(constant.step_time_high);
}

std::string jitter_lines(const Summary& summary) {
  if (!summary.jitter) return "";
  const JitterResult& jitter = *summary.jitter;
  const auto more = [&summary](Seconds time) {
    return " (+" + percent(time / summary.step_time - 1.0) + ")";
  };
  std::string text = "\nWith jitter: " + std::to_string(jitter.steps) + " steps; GPUs " +
                     percent(jitter.compute) + ", NICs " + percent(jitter.network) +
                     " (standard deviation, only slower), seed " + std::to_string(jitter.seed) + "\n";
  text += text_row("mean", duration(jitter.mean) + more(jitter.mean));
  text += text_row("half within", duration(jitter.p50) + more(jitter.p50));
  text += text_row("90 % within", duration(jitter.p90) + more(jitter.p90));
  return text + text_row("99 % within", duration(jitter.p99) + more(jitter.p99));
}

std::string uncertainty_table(const Summary& summary) {
  if (!summary.uncertainty) return "";
  const Uncertainty& uncertainty = *summary.uncertainty;
  std::string text = "\nHow sure the step time is\n";
  text +=
      text_row("between", duration(uncertainty.low) + " and " + duration(uncertainty.high) + " in 90 % of " +
                              std::to_string(uncertainty.samples) + " samples of the constants (seed " +
                              std::to_string(uncertainty.seed) + ")");
  std::string label = "hangs on";
  for (const ConstantEffect& constant : uncertainty.constants) {
    if (constant.effect() < kSmallEffect * summary.step_time) break;
    text += text_row(label, constant.name + ", " + constant.grade + ", " + constant.low + " to " +
                                constant.high + ": " + effect_text(constant, summary.step_time));
    label = "";
  }
  return text + text_row("", "How far the model itself is off comes on top: docs/accuracy.md.");
}

std::string stage_row(const Summary& summary, const RankSummary& rank) {
  const auto cause = [&](Cause c) { return rank.by_cause[static_cast<std::size_t>(c)]; };
  return "  " + pad_left(std::to_string(rank.stage), 5) + pad_left(std::to_string(rank.rank), 7) +
         pad_left(std::to_string(rank.represents), 7) + pad_left(std::to_string(rank.layers), 8) +
         pad_left(duration(rank.busy), 11) + pad_left(percent(rank.bubble / (rank.busy + rank.bubble)), 10) +
         pad_left(percent(cause(Cause::kTensorCommunication) / summary.step_time), 10) +
         pad_left(percent(cause(Cause::kPipelineCommunication) / summary.step_time), 10) +
         pad_left(percent(cause(Cause::kDataCommunication) / summary.step_time), 10) +
         (summary.plan.context_parallel > 1
              ? pad_left(percent(cause(Cause::kContextCommunication) / summary.step_time), 10)
              : "") +
         (summary.model.experts.active()
              ? pad_left(percent(cause(Cause::kExpertCommunication) / summary.step_time), 10)
              : "") +
         pad_left(gib(rank.peak_memory), 11) + "\n";
}

/// Ranks whose rows would say the same of their stage, together; where groups differ in their partners only,
/// as those of experts do, there are many of them.
std::vector<RankSummary> merged_ranks(const Summary& summary) {
  std::vector<RankSummary> merged;
  std::map<std::string, std::size_t> places;
  for (const RankSummary& rank : summary.ranks) {
    RankSummary alike = rank;
    alike.rank = 0;
    alike.represents = 0;
    const auto [place, fresh] = places.try_emplace(stage_row(summary, alike), merged.size());
    if (fresh) {
      merged.push_back(rank);
    } else {
      merged[place->second].represents += rank.represents;
    }
  }
  return merged;
}

std::string stage_table(const Summary& summary) {
  std::string text = "\nStages (one row per group of identical ranks; communication that is waited for)\n";
  text += "  stage   rank  ranks  layers       busy    bubble    tensor  pipeline      data";
  text += summary.plan.context_parallel > 1 ? "   context" : "";
  text += std::string(summary.model.experts.active() ? "   experts" : "") + "     memory\n";
  const std::vector<RankSummary> ranks = merged_ranks(summary);
  const std::size_t rows = ranks.size();
  for (std::size_t i = 0; i < rows; ++i) {
    if (rows > kStageRows && i == kStageRows / 2) {
      text += "    …  " + std::to_string(rows - kStageRows) + " more rows in the JSON output\n";
      i = rows - kStageRows / 2;
    }
    text += stage_row(summary, ranks[i]);
  }
  return text;
}

std::string memory_table(const Summary& summary) {
  const RankSummary& rank = fullest_rank(summary);
  std::string text = "\nMemory of the fullest rank (stage " + std::to_string(rank.stage) + ", rank " +
                     std::to_string(rank.rank) + ") at its peak\n";
  for (std::size_t c = 0; c < rank.memory_at_peak.size(); ++c) {
    if (rank.memory_at_peak[c] == 0) continue;
    text += table_row(words(program::to_string(static_cast<program::MemoryCategory>(c))),
                      pad_left(gib(rank.memory_at_peak[c]), 10));
  }
  return text;
}

std::string closing(const Summary& summary) {
  std::string text = "\nWhy\n";
  for (const std::string& note : summary.notes) text += bullet(note);
  if (!summary.warnings.empty()) {
    text += "\nWarnings\n";
    for (const std::string& warning : summary.warnings) text += bullet(warning);
  }
  const std::string assumptions =
      "Assumptions: attention FLOPs counted in full (not halved for the causal mask); MFU counts model "
      "FLOPs, HFU "
      "adds recomputation; GiB = 2^30 bytes.";
  text += "\n" + wrap(assumptions, kTextWidth - 2, 2) + "\n";
  text += "Simulated " + std::to_string(summary.ranks.size()) + " of " + std::to_string(summary.world_size) +
          " ranks" + (summary.folded ? " (the others are identical)" : "") + ", " +
          std::to_string(summary.activities) + " activities, in " + duration(summary.wall_time) + ".\n";
  return text;
}

}  // namespace

std::string to_text(const Summary& summary, Detail detail) {
  return head(summary) + result(summary) + training_block(summary) + jitter_lines(summary) +
         uncertainty_table(summary) + sensitivity_text(summary) + placement_text(summary) +
         breakdown(summary) + stage_table(summary) + network_tables(summary) +
         (detail == Detail::kFull ? group_table(summary) : "") + memory_table(summary) +
         kernel_table(summary) + closing(summary);
}

}  // namespace trainsim::report
