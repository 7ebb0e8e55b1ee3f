// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/measured.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/base/quantile.hpp"
#include "sim/base/spelling.hpp"

namespace trainsim::exchange {

namespace {

StepTimes mean_of(const std::vector<StepTimes>& all) {
  StepTimes sum;
  double optimizers = 0;
  for (const StepTimes& times : all) {
    sum.forward += times.forward;
    sum.backward += times.backward;
    sum.optimizer += times.optimizer;
    optimizers += times.optimizer > 0 ? 1 : 0;
  }
  const auto count = static_cast<double>(all.size());
  return {sum.forward / count, sum.backward / count, sum.optimizer / std::max(optimizers, 1.0)};
}

StepTimes mean_of_ranks(const Measurement& measured) {
  std::vector<StepTimes> all;
  all.reserve(measured.times.size());
  for (const auto& [rank, times] : measured.times) all.push_back(times);
  return mean_of(all);
}

/// What measured times need to know of the plan.
class Plan {
 public:
  explicit Plan(const Translation& translation) : translation_(translation) {}

  std::int64_t count(std::string_view path, std::int64_t otherwise) const {
    return known(path).value_or(otherwise);
  }
  std::optional<std::int64_t> gpus() const { return known("gpus"); }
  std::int64_t stages() const { return count("plan.pipeline_parallel", 1); }

  /// Micro-batches of one step on one pipeline.
  std::int64_t micro_batches(const std::optional<std::int64_t>& global_batch) const {
    if (const auto accumulation = known("plan.gradient_accumulation")) return *accumulation;
    const std::optional<std::int64_t> set = known("plan.global_batch_size");
    const std::optional<std::int64_t> batch = set ? set : global_batch;
    std::string needed;
    if (!batch) needed = "plan.global_batch_size";
    if (!known("gpus")) needed += needed.empty() ? "gpus" : " and gpus";
    if (!needed.empty()) {
      throw InputError("error: its times are those of all micro-batches of a step, and without " + needed +
                       " nobody knows how many; import what started the run with it (a script, a "
                       "configuration), or give --gpus");
    }
    return divided(*batch, *known("gpus"));
  }

  /// The stage that a rank holds. Throws InputError when there is no such rank, or nobody knows.
  std::int64_t stage_of(std::int64_t rank) const {
    const std::optional<std::int64_t> gpus = known("gpus");
    if (gpus && rank >= *gpus) {
      throw InputError("error: rank " + std::to_string(rank) + " is none of the " + std::to_string(*gpus) +
                       " GPUs of the plan; give --gpus");
    }
    if (stages() == 1) return 0;
    const Setting* order = translation_.find("plan.order");
    if (order != nullptr && order->value == "tp-pp-dp") return rank / stage_width() % stages();
    if (!gpus) {
      throw InputError("error: without gpus nobody knows which stage rank " + std::to_string(rank) +
                       " holds; give --gpus");
    }
    return rank / (replicas(*gpus) * stage_width());
  }

 private:
  /// Ranks that hold one stage of one replica: context-parallel ranks come right after tensor-parallel ones.
  std::int64_t stage_width() const {
    return count("plan.tensor_parallel", 1) * count("plan.context_parallel", 1);
  }

  static std::string cure() { return "; import what started the measured run, with the --gpus that it had"; }

  std::int64_t replicas(std::int64_t gpus) const {
    const std::int64_t replica = stage_width() * stages();
    if (gpus % replica != 0) {
      throw InputError("error: " + std::to_string(gpus) + " GPUs do not divide into replicas of " +
                       std::to_string(replica) +
                       " (tensor x context x pipeline parallelism), so that nobody " +
                       "knows how many micro-batches its times are of" + cure());
    }
    return gpus / replica;
  }

  /// Micro-batches of a batch on each replica; the measured run had a whole number of both.
  std::int64_t divided(std::int64_t batch, std::int64_t gpus) const {
    const std::int64_t pipelines = replicas(gpus);
    const std::int64_t size = count("plan.micro_batch_size", 1);
    if (batch % (pipelines * size) != 0) {
      throw InputError("error: a global batch of " + std::to_string(batch) +
                       " does not divide into micro-batches of " + std::to_string(size) + " on " +
                       std::to_string(pipelines) + (pipelines == 1 ? " replica" : " replicas") +
                       ", so that nobody knows how many its times are of" + cure());
    }
    return batch / (pipelines * size);
  }

  std::optional<std::int64_t> known(std::string_view path) const {
    const Setting* setting = translation_.find(path);
    if (setting == nullptr || setting->value.empty()) return std::nullopt;
    const bool digits = std::all_of(setting->value.begin(), setting->value.end(),
                                    [](char c) { return c >= '0' && c <= '9'; });
    constexpr std::size_t longest = 15;
    if (!digits || setting->value.size() > longest) return std::nullopt;
    return std::max<std::int64_t>(1, std::stoll(setting->value));
  }

  const Translation& translation_;
};

std::string milliseconds(Seconds time) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%.6g ms", time * 1e3);
  return text.data();
}

std::string as_yaml(const StepTimes& step, std::int64_t micro_batches) {
  const auto parts = static_cast<double>(micro_batches);
  return "{forward: " + milliseconds(step.forward / parts) +
         ", backward: " + milliseconds(step.backward / parts) +
         (step.optimizer > 0 ? ", optimizer: " + milliseconds(step.optimizer) : "") + "}";
}

/// Times by stage, each the mean of its ranks; nothing where no rank of it was measured.
std::vector<std::optional<StepTimes>> by_stage(const Measurement& measured, const Plan& plan) {
  std::vector<std::vector<StepTimes>> ranks(static_cast<std::size_t>(plan.stages()));
  for (const auto& [rank, times] : measured.times) {
    ranks.at(static_cast<std::size_t>(plan.stage_of(rank))).push_back(times);
  }
  std::vector<std::optional<StepTimes>> stages(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].empty()) stages[i] = mean_of(ranks[i]);
  }
  return stages;
}

/// The value of plan.profile for times of named ranks.
std::string profile_of_ranks(const Measurement& measured, const Plan& plan, std::int64_t micro_batches,
                             Translation& translation) {
  const std::vector<std::optional<StepTimes>> stages = by_stage(measured, plan);
  std::vector<StepTimes> known;
  std::string missing;
  std::string all;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!stages[i]) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(i);
      continue;
    }
    known.push_back(*stages[i]);
    all += all.empty() ? "[" : ", ";
    all += as_yaml(*stages[i], micro_batches);
  }
  if (missing.empty() && stages.size() > 1) return all + "]";
  if (!missing.empty()) {
    translation.assume("stages that nobody measured (" + missing +
                       ") take the mean of the others, although only the first has the embedding and only "
                       "the last the head");
  }
  return as_yaml(mean_of(known), micro_batches);
}

/// Whether a measurement can add ranks to a later one.
bool adds_ranks(const Measurement& earlier, const Measurement& later) {
  const bool single =
      earlier.ranks == Measurement::Ranks::kNamed || earlier.ranks == Measurement::Ranks::kUnnamed;
  return single && earlier.ranks == later.ranks && earlier.what == later.what;
}

void merge_ranks(const Measurement& earlier, Measurement& later) {
  std::vector<std::int64_t> twice;
  for (const auto& [rank, times] : earlier.times) {
    const bool named = later.ranks == Measurement::Ranks::kNamed;
    const std::int64_t place = named ? rank : static_cast<std::int64_t>(later.times.size());
    if (!later.times.emplace(place, times).second) twice.push_back(rank);
  }
  if (twice.empty()) return;
  later.notes.push_back("the times of rank " + join_numbers(twice) + " in " + earlier.source +
                        " are left out, because a later file has them too");
}

}  // namespace

StepTimes median(const std::vector<StepTimes>& steps) {
  constexpr double half = 0.5;
  std::vector<Seconds> forward;
  std::vector<Seconds> backward;
  std::vector<Seconds> optimizer;
  forward.reserve(steps.size());
  backward.reserve(steps.size());
  optimizer.reserve(steps.size());
  for (const StepTimes& step : steps) {
    forward.push_back(step.forward);
    backward.push_back(step.backward);
    if (step.optimizer > 0) optimizer.push_back(step.optimizer);
  }
  const Seconds update = optimizer.empty() ? 0 : quantile(std::move(optimizer), half);
  return {quantile(std::move(forward), half), quantile(std::move(backward), half), update};
}

Measurement joined(std::vector<Measurement> measurements) {
  Measurement all = std::move(measurements.back());
  measurements.pop_back();
  // From the last to the first, because the later counts.
  for (auto each = measurements.rbegin(); each != measurements.rend(); ++each) {
    if (!all.global_batch_size) all.global_batch_size = each->global_batch_size;
    if (!adds_ranks(*each, all)) {
      all.notes.push_back("the times of " + each->source + " are left out: those of " + all.source +
                          ", which comes later, count");
      continue;
    }
    merge_ranks(*each, all);
    if (!all.world_size) all.world_size = each->world_size;
    for (std::string& note : each->notes) {
      if (std::find(all.notes.begin(), all.notes.end(), note) == all.notes.end())
        all.notes.push_back(std::move(note));
    }
  }
  return all;
}

void translate_measured(const Measurement& measured, Translation& translation) {
  using Ranks = Measurement::Ranks;
  const Plan plan(translation);
  const std::int64_t micro_batches = plan.micro_batches(measured.global_batch_size);
  const bool pipeline = plan.stages() > 1;
  std::string value;
  switch (measured.ranks) {
    case Ranks::kNamed:
      value = profile_of_ranks(measured, plan, micro_batches, translation);
      break;
    case Ranks::kUnnamed:
      if (pipeline) {
        translation.assume(
            "every stage takes as long as the mean of what was measured, because no rank is named "
            "(distributedInfo in the trace)");
      }
      value = as_yaml(mean_of_ranks(measured), micro_batches);
      break;
    case Ranks::kRange:
      if (pipeline) {
        translation.assume(
            "every stage takes as long as the slowest rank; a log with --timing-log-option all says how long "
            "each takes");
        value = as_yaml(measured.times.at(1), micro_batches);
      } else {
        value = as_yaml(mean_of_ranks(measured), micro_batches);
      }
      break;
    case Ranks::kLongest:
      translation.assume("every rank takes as long as the slowest");
      value = as_yaml(measured.times.at(0), micro_batches);
      break;
    case Ranks::kLast:
      if (pipeline) translation.assume("every stage takes as long as the last one, which has the head");
      value = as_yaml(measured.times.at(0), micro_batches);
      break;
  }
  std::string origin = measured.what;
  if (measured.ranks == Ranks::kNamed || measured.ranks == Ranks::kUnnamed)
    origin +=
        " of " + std::to_string(measured.times.size()) + (measured.times.size() == 1 ? " rank" : " ranks");
  origin += ", median of " + measured.samples + ", over " + std::to_string(micro_batches) + " micro-batches";
  translation.set("plan.profile", value, origin);
  if (measured.global_batch_size && translation.find("plan.global_batch_size") == nullptr)
    translation.set("plan.global_batch_size", *measured.global_batch_size, "global batch size of the log");
  if (measured.world_size && plan.gpus() && *measured.world_size != *plan.gpus())
    translation.assume("the trace is of a job of " + std::to_string(*measured.world_size) +
                       " ranks (distributedInfo.world_size), and the plan has " +
                       std::to_string(*plan.gpus()) +
                       " GPUs, to which its times may not apply; import what started the measured run, with "
                       "the --gpus that it had");
  for (const std::string& note : measured.notes) translation.assume(note);
}

}  // namespace trainsim::exchange
