// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/spec_readers.hpp"
#include "sim/hardware/background.hpp"
#include "sim/training/batch_stages.hpp"
#include "sim/training/check.hpp"
#include "sim/training/energy.hpp"

namespace trainsim::config {

namespace {

using training::CheckpointSpec;
using training::FailureSpec;
using training::TrainingSpec;

/// More tokens, and steps, than any run has.
constexpr CountRange kTokens = {1, 1'000'000'000'000'000'000};
constexpr CountRange kSteps = {1, 1'000'000'000};
constexpr CountRange kSamples = {1, 1'000'000'000'000'000};
/// A GPU that fails within a minute, or once in a hundred thousand years, is a mistake of units.
constexpr NumberRange kMtbf = {60.0, 3.2e12, true};
constexpr NumberRange kRestart = {0.0, 3.2e7, true};
constexpr NumberRange kInterval = {0.0, 3.2e9, false};
constexpr NumberRange kPue = {1.0, 10.0, true};
/// PUE of the data centres of Llama (Touvron et al. 2023, arXiv 2302.13971).
constexpr const char* kUsualPue = "1.1";

/// Text taken apart at its last blank.
std::pair<std::string, std::string> at_last_blank(const std::string& text) {
  const std::size_t blank = text.find_last_of(' ');
  if (blank == std::string::npos) return {text, ""};
  return {text.substr(0, text.find_last_not_of(' ', blank) + 1), text.substr(blank + 1)};
}

/// An amount of money and its currency.
Reader<training::Price> as_price() {
  const std::string expects = "a price such as 2.50 USD";
  const auto parse = [expects](const Value& value) {
    using Result = Parsed<training::Price>;
    std::string fault = scalar_fault(value, expects, true);
    if (!fault.empty()) return Result::failed(std::move(fault));
    const auto [amount, currency] = at_last_blank(value.text);
    const auto is_letter = [](unsigned char c) { return c >= 'A' && c <= 'Z'; };
    if (currency.size() != 3 || !std::all_of(currency.begin(), currency.end(), is_letter)) {
      return Result::failed(clip(value.text) +
                            " is not a price; write an amount and the three letters of its currency, such as "
                            "2.50 USD");
    }
    const Parsed<double> number = parse_number(amount);
    if (!number.value) return Result::failed(number.error);
    if (*number.value < 0 || *number.value > 1e9)
      return Result::failed("must be between 0 and 1e9, not " + clip(value.text));
    return Result::of({*number.value, currency});
  };
  return {expects, parse};
}

/// Time between two checkpoints: steps, a duration, or neither.
struct Interval {
  std::optional<Seconds> duration;
  std::optional<std::int64_t> steps;
};

Reader<Interval> as_interval() {
  const std::string expects = "auto, a duration such as 30 min, or a number of steps such as 500 steps";
  const auto parse = [expects](const Value& value) {
    using Result = Parsed<Interval>;
    std::string fault = scalar_fault(value, expects, true);
    if (!fault.empty()) return Result::failed(std::move(fault));
    if (value.text == "auto") return Result::of({});
    const auto [number, unit] = at_last_blank(value.text);
    if (unit == "steps" || unit == "step") {
      const Parsed<std::int64_t> steps = as_count(kSteps).parse(make_scalar(number, value.at));
      return steps.value ? Result::of({std::nullopt, steps.value}) : Result::failed(steps.error);
    }
    const Parsed<double> any = parse_quantity(value.text, Dimension::kDuration);
    if (!any.value) return Result::failed(any.error + "; or a number of steps, such as 500 steps, or auto");
    const Parsed<double> duration = as_quantity(Dimension::kDuration, kInterval).parse(value);
    return duration.value ? Result::of({duration.value, std::nullopt}) : Result::failed(duration.error);
  };
  return {expects, parse};
}

void read_length(Section& section, TrainingSpec& spec) {
  spec.tokens = section.optional("tokens", as_count(kTokens));
  spec.steps = section.optional("steps", as_count(kSteps));
  const bool tokens = section.raw("tokens") != nullptr;
  const bool steps = section.raw("steps") != nullptr;
  if (tokens && steps) section.fail("steps", "tokens say how long the run is, too; remove one of the two");
  if (!tokens && !steps) section.require("tokens", "a count of tokens such as 300B, or steps instead");
}

void read_ramp(Section& run, TrainingSpec& spec) {
  std::optional<Section> section = run.mapping("rampup_batch_size", false);
  if (!section) return;
  training::BatchRamp ramp;
  ramp.start = section->required("start", as_count());
  ramp.increment = section->required("increment", as_count());
  ramp.samples = section->required("samples", as_count(kSamples));
  section->finish();
  spec.ramp = ramp;
}

void read_power(Section& run, const hardware::ClusterSpec& cluster, TrainingSpec& spec) {
  std::optional<Section> section = run.mapping("power", false);
  if (!section) return;
  spec.power.pue = section->defaulted("pue", as_number(kPue), kUsualPue);
  spec.power.grid_intensity =
      section->optional("grid_intensity", as_quantity(Dimension::kCarbon, {0.0, 1e5, true}));
  const std::optional<double> overhead =
      section->optional("node_overhead", as_quantity(Dimension::kPower, {0.0, 1e6, true}));
  spec.power.node_overhead =
      overhead.value_or(training::usual_node_overhead(cluster.gpus_per_node, cluster.gpu.rated_power));
  if (cluster.gpu.rated_power > 0 && section->raw("node_overhead") == nullptr)
    section->note_default("node_overhead", format_number(spec.power.node_overhead) + " W");
  section->finish();
}

void read_failures(Section& run, TrainingSpec& spec) {
  std::optional<Section> section = run.mapping("failures", false);
  if (!section) return;
  FailureSpec failures;
  failures.gpu_mtbf = section->required("gpu_mtbf", as_quantity(Dimension::kDuration, kMtbf));
  failures.restart_time = section->required("restart_time", as_quantity(Dimension::kDuration, kRestart));
  failures.runs = section->defaulted("runs", as_count({10, 1'000'000}), "1000");
  failures.seed = static_cast<std::uint64_t>(section->defaulted("seed", as_count({0, 1'000'000'000}), "1"));
  section->finish();
  spec.failures = failures;
  if (run.raw("checkpoint") == nullptr)
    run.fail("failures", "needs checkpoint: without one the run would start anew after each failure");
}

/// Size and bandwidth say how long a checkpoint takes, or the stall does, or all do.
void check_checkpoint_cost(Section& section) {
  const auto given = [&section](const char* key) { return section.raw(key) != nullptr; };
  if (!given("write_bandwidth") && !given("stall")) {
    section.fail("write_bandwidth",
                 "missing, as is stall; give the rate at which a checkpoint is written, or how long it stops "
                 "training");
  } else if (given("size") && !given("write_bandwidth")) {
    section.fail("size", "has no effect without write_bandwidth; give that, too, or remove this key");
  }
}

void read_checkpoint(Section& run, TrainingSpec& spec) {
  std::optional<Section> section = run.mapping("checkpoint", false);
  if (!section) return;
  CheckpointSpec checkpoint;
  const Interval interval = section->defaulted("interval", as_interval(), "auto");
  checkpoint.interval = interval.duration;
  checkpoint.interval_steps = interval.steps;
  if (const auto size = section->optional("size", as_quantity(Dimension::kSize, {0.0, 1e18, false})))
    checkpoint.size = static_cast<Bytes>(*size);
  checkpoint.write_bandwidth =
      section->optional("write_bandwidth", as_quantity(Dimension::kRate, kRateRange));
  checkpoint.stall = section->optional("stall", as_quantity(Dimension::kDuration, kRestart));
  const Words<bool> ways = {{"storage", false}, {"compute", true}};
  checkpoint.through_compute = section->defaulted("through", as_choice(ways), "storage");
  check_checkpoint_cost(*section);
  if (checkpoint.through_compute && (!checkpoint.write_bandwidth || !checkpoint.stall)) {
    section->fail("through",
                  "compute slows the steps beside which a checkpoint is written; give write_bandwidth and "
                  "stall, after which training goes on before it is written");
  }
  const bool chosen =
      !interval.duration && !interval.steps && section->all_read({section->field("interval")});
  if (chosen && run.raw("failures") == nullptr) {
    section->fail("interval",
                  "auto needs failures, on which the best interval depends; give them, or write a duration "
                  "such as 30 min");
  }
  // With a bandwidth checkpoints are as frequent as they can be written.
  if (chosen && checkpoint.stall == 0.0 && section->raw("write_bandwidth") == nullptr) {
    section->fail("interval",
                  "auto needs a stall of more than 0: what costs nothing is best done always; write a "
                  "duration such as 30 min");
  }
  section->finish();
  spec.checkpoint = checkpoint;
}

}  // namespace

std::optional<TrainingSpec> read_run(Section& top, const hardware::ClusterSpec& cluster) {
  std::optional<Section> section = top.mapping("run", false);
  if (!section) return std::nullopt;
  TrainingSpec spec;
  read_length(*section, spec);
  read_ramp(*section, spec);
  spec.price = section->optional("price_per_gpu_hour", as_price());
  read_power(*section, cluster, spec);
  read_failures(*section, spec);
  read_checkpoint(*section, spec);
  section->finish();
  return spec;
}

Problems check_power(const hardware::ClusterSpec& cluster, const FieldIndex& index) {
  const std::vector<std::string> keys = {"run.power.pue", "run.power.grid_intensity",
                                         "run.power.node_overhead"};
  const bool asked =
      std::any_of(keys.begin(), keys.end(), [&index](const std::string& key) { return index.has(key); });
  if (cluster.gpu.rated_power > 0 || !asked) return {};
  return {{"run.power",
           "needs cluster.gpu.rated_power and static_power, from which energy follows; give them, or remove "
           "this key"}};
}

Problems check_writing(const TrainingSpec& spec, const plan::ParallelPlan& plan,
                       const hardware::ClusterSpec& cluster) {
  if (!spec.checkpoint || !spec.checkpoint->through_compute || !spec.checkpoint->write_bandwidth) return {};
  const BytesPerSecond rate = *spec.checkpoint->write_bandwidth;
  const hardware::BackgroundLoad load = hardware::background_of(cluster, plan.gpus, rate);
  const double most = std::max(load.nics, load.switches);
  if (most < 1.0) return {};
  if (cluster.nics_per_node == 0)
    return {{"run.checkpoint.through", "compute needs NICs, and the nodes of this cluster have none"}};
  const bool nics = load.nics >= 1.0;
  return {{"run.checkpoint.write_bandwidth",
           format_number(rate / kGiga) + " GB/s through the compute fabric leave training nothing of " +
               (nics ? "its NICs, which send " + format_number(rate / load.nics / kGiga) + " GB/s in all"
                     : std::string("the links between its switches")) +
               "; write more slowly, or through: storage"}};
}

Problems check_run(const TrainingSpec& spec, const plan::ParallelPlan& plan, const model::ModelSpec& model) {
  training::RunFacts facts;
  facts.full = {plan.global_batch_size, model.sequence_length};
  facts.batch_unit = plan.micro_batch_size * plan.data_parallel;
  facts.batch_reason = "micro_batch_size " + std::to_string(plan.micro_batch_size) + " x data_parallel " +
                       std::to_string(plan.data_parallel);
  if (plan.schedule == plan::ScheduleKind::kInterleaved && plan.virtual_pipeline > 1) {
    facts.batch_unit *= plan.pipeline_parallel;
    facts.batch_reason +=
        " x pipeline_parallel " + std::to_string(plan.pipeline_parallel) + " (schedule: interleaved)";
  }
  return training::check(spec, facts);
}

}  // namespace trainsim::config
