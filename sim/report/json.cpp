// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "sim/base/spelling.hpp"
#include "sim/base/text.hpp"
#include "sim/report/groups.hpp"
#include "sim/report/json_dump.hpp"
#include "sim/report/network.hpp"
#include "sim/report/placement.hpp"
#include "sim/report/sensitivity.hpp"
#include "sim/report/training.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::report {

namespace {

/// With what only models with experts have if it is one.
Json by_cause(const std::array<Seconds, program::kCauses>& seconds, bool experts) {
  Json json = Json::object();
  for (std::size_t c = 0; c < seconds.size(); ++c) {
    if (!experts && static_cast<program::Cause>(c) == program::Cause::kExpertCommunication) continue;
    json[program::to_string(static_cast<program::Cause>(c))] = seconds[c];
  }
  return json;
}

Json ranks(const Summary& summary) {
  Json list = Json::array();
  const bool experts = summary.model.experts.active();
  for (const RankSummary& rank : summary.ranks) {
    list.push_back(
        {{"rank", rank.rank},
         {"represents", rank.represents},
         {"stage", rank.stage},
         {"tensor_rank", rank.tensor_rank},
         {"data_rank", rank.data_rank},
         {"layers", rank.layers},
         {"busy_s", rank.busy},
         {"bubble_s", rank.bubble},
         {"breakdown", by_cause(rank.by_cause, experts)},
         {"peak_memory_bytes", rank.peak_memory},
         {"peak_reserved_bytes", rank.reserved ? Json(rank.reserved->peak_reserved) : Json(nullptr)},
         {"peak_at", rank.peak_at},
         {"peak_time_s", rank.peak_time},
         {"memory_at_peak", by_category(rank.memory_at_peak, experts)}});
  }
  return list;
}

Json recompute(const plan::Recompute& recompute) {
  Json json = {{"granularity", plan::to_string(recompute.granularity)}};
  if (recompute.granularity == plan::RecomputeGranularity::kFull) {
    json["method"] = plan::to_string(recompute.method);
    json["layers"] = recompute.layers;
  }
  if (recompute.granularity == plan::RecomputeGranularity::kSelective)
    json["modules"] = plan::module_names(recompute.modules);
  if (recompute.partial_micro_batches > 0) {
    json["partial_micro_batches"] = recompute.partial_micro_batches;
    json["partial_layers"] = recompute.partial_layers;
  }
  return json;
}

Json lora(const plan::Lora& lora) {
  if (!lora.active()) return nullptr;
  Json modules = Json::array();
  if (lora.attention) modules.push_back("attention");
  if (lora.mlp) modules.push_back("mlp");
  return {{"rank", lora.rank}, {"modules", modules}};
}

Json fp8(const plan::ParallelPlan& plan) {
  if (!plan.uses_fp8()) return nullptr;
  return {{"recipe", plan::to_string(plan.fp8.recipe)}, {"parameters", plan.fp8.parameters}};
}

Json sharded_units(const plan::ParallelPlan& plan) {
  if (plan.sharding != plan::Sharding::kZero2 && plan.sharding != plan::Sharding::kZero3) return nullptr;
  Json json = {{"layers", plan.units.layers},
               {"parameters", plan.units.parameters > 0 ? Json(plan.units.parameters) : Json(nullptr)},
               {"gathered", plan.units.gathered},
               {"backward_prefetch", nullptr}};
  if (plan.units.parameters > 0) json["layers"] = nullptr;
  if (plan.sharding == plan::Sharding::kZero3)
    json["backward_prefetch"] = plan::to_string(plan.units.backward_prefetch);
  return json;
}

Json plan_json(const Summary& summary) {
  const plan::ParallelPlan& plan = summary.plan;
  return {{"gpus", plan.gpus},
          {"tensor_parallel", plan.tensor_parallel},
          {"pipeline_parallel", plan.pipeline_parallel},
          {"virtual_pipeline", plan.virtual_pipeline},
          {"data_parallel", plan.data_parallel},
          {"context_parallel", plan.context_parallel},
          {"expert_parallel", plan.expert_parallel},
          {"sequence_parallel", plan.sequence_parallel},
          {"micro_batch_size", plan.micro_batch_size},
          {"global_batch_size", plan.global_batch_size},
          {"micro_batches", plan.micro_batches()},
          {"sequence_length", summary.model.sequence_length},
          {"schedule", plan::to_string(plan.schedule)},
          {"recompute", recompute(plan.recompute)},
          {"lora", lora(plan.lora)},
          {"sharding", plan::to_string(plan.sharding)},
          {"shard_ranks", plan.shard_ranks()},
          {"sharded_units", sharded_units(plan)},
          {"offload_optimizer", plan::to_string(plan.offload.optimizer)},
          {"offload_parameters", plan::to_string(plan.offload.parameters)},
          {"activation_offload_layers", plan.offloaded_layers},
          {"precision", plan::to_string(plan.precision)},
          {"fp8", fp8(plan)},
          {"gradient_bytes", plan.gradient_bytes},
          {"layers_per_virtual_stage", plan::stage_layers(plan, summary.model)},
          {"padded_vocabulary",
           model::padded_vocabulary(summary.model.vocab_size, plan.vocab_padding, plan.tensor_parallel)},
          {"overlap_gradient_reduction", plan.overlap_gradient_reduction},
          {"overlap_parameter_gather", plan.overlap_parameter_gather},
          {"overlap_point_to_point", plan.overlap_point_to_point},
          {"overlap_tensor_communication", plan.overlap_tensor_communication},
          {"scatter_gather_transfers", plan.scatter_gather_transfers},
          {"bucket_parameters", plan.bucket_parameters},
          {"launch", plan::to_string(plan.launch)},
          {"fusion", plan::to_string(plan.fusion)},
          {"gradient_accumulation_fusion", plan.gradient_accumulation_fusion},
          {"persistent_norm", plan.persistent_norm},
          {"framework", plan::to_string(plan.framework)},
          {"optimizer", plan::to_string(plan.optimizer)},
          {"loss", plan::to_string(plan.loss)},
          {"loss_metrics", plan.loss_metrics},
          {"fused_linears", plan::fused_names(plan.fused_linears)},
          {"checkpoint_early_stop", plan.checkpoint_early_stop},
          {"transformer_engine", plan.transformer_engine},
          {"attention", model::to_string(summary.model.attention)}};
}

Json kernels(const Summary& summary) {
  Json list = Json::array();
  for (const KernelShare& kernel : summary.kernels) {
    list.push_back({{"name", kernel.name},
                    {"kind", kernel.kind},
                    {"op", kernel.op.empty() ? Json(nullptr) : Json(kernel.op)},
                    {"seconds", kernel.seconds}});
  }
  return list;
}

Json transfers_json(const Summary& summary) {
  Json list = Json::array();
  for (const program::Transfers& transfers : summary.traffic.transfers) {
    Json entry = {{"kind", program::to_string(transfers.kind)}, {"op", transfers.op}};
    if (transfers.kind != program::TrafficKind::kPipeline) {
      entry["algorithm"] = to_string(transfers.algorithm);
      entry["protocol"] = to_string(transfers.protocol);
    }
    entry["calls"] = transfers.calls;
    entry["tensor_bytes"] = transfers.tensor_bytes;
    entry["alone_s"] = transfers.alone;
    list.push_back(std::move(entry));
  }
  return list;
}

Json groups_json(const Summary& summary) {
  Json list = Json::array();
  for (const program::GroupTransfers& group : alike_groups(summary)) {
    const bool message = group.kind == program::TrafficKind::kPipeline;
    list.push_back({{"kind", program::to_string(group.kind)},
                    {"group", group.of.name},
                    {"stages", group.of.stages},
                    {"size", group.size},
                    {"nodes", group.nodes},
                    {"ranks", group.ranks},
                    {"op", group.op},
                    {"algorithm", message ? Json(nullptr) : Json(to_string(group.algorithm))},
                    {"protocol", message ? Json(nullptr) : Json(to_string(group.protocol))},
                    {"calls", group.calls},
                    {"tensor_bytes", group.tensor_bytes},
                    {"sent_bytes", group.sent_bytes},
                    {"alone_s", group.alone},
                    {"time_s", group.busy},
                    {"exposed_s", group.exposed},
                    {"longest_exposed_s", group.longest_exposed},
                    {"hidden_s", group.hidden()},
                    {"bus_bandwidth_bytes_per_s", group.bus_bandwidth()},
                    {"limit", group.limit}});
  }
  return list;
}

Json users_json(const program::LinkTraffic& link) {
  Json list = Json::array();
  for (const program::LinkUser& user : link.users)
    list.push_back({{"group", user.by.name}, {"stages", user.by.stages}, {"bytes", user.bytes}});
  return list;
}

Json links_json(const Summary& summary) {
  Json list = Json::array();
  for (const program::LinkTraffic& link : summary.traffic.links) {
    Json bytes = Json::object();
    for (std::size_t kind = 0; kind < link.bytes.size(); ++kind) {
      if (link.bytes[kind] > 0)
        bytes[program::to_string(static_cast<program::TrafficKind>(kind))] = link.bytes[kind];
    }
    list.push_back({{"name", link.name},
                    {"bandwidth_bytes_per_s", link.bandwidth},
                    {"utilization", utilization(summary, link)},
                    {"bytes", std::move(bytes)},
                    {"users", users_json(link)}});
  }
  return list;
}

Json scalars(const Summary& summary) {
  return {{"schema", 1},
          {"name", summary.name},
          {"step_time_s", summary.step_time},
          {"tokens_per_s", summary.tokens_per_second},
          {"tokens_per_s_per_gpu", summary.tokens_per_second_per_gpu},
          {"samples_per_s", summary.samples_per_second},
          {"model_tflops_per_gpu", summary.model_tflops_per_gpu},
          {"hardware_tflops_per_gpu", summary.hardware_tflops_per_gpu},
          {"mfu", summary.mfu},
          {"hfu", summary.hfu},
          {"bubble_ratio", summary.bubble_ratio},
          {"bubble_ratio_stage", summary.bubble_ratio_stage},
          {"bubble_ratio_theory",
           summary.bubble_ratio_theory ? Json(*summary.bubble_ratio_theory) : Json(nullptr)},
          {"scaling_efficiency", summary.scaling_efficiency},
          {"fits", summary.fits},
          {"verdict", to_string(summary.verdict)},
          {"peak_memory_bytes", summary.peak_memory},
          {"peak_reserved_bytes", summary.peak_reserved},
          {"allocator_retries", summary.allocator_retries},
          {"memory_capacity_bytes", summary.memory_capacity},
          {"memory_reserve_bytes", summary.memory_reserve},
          {"memory_headroom_bytes", summary.memory_headroom},
          {"host_memory_bytes", summary.host_memory},
          {"host_memory_capacity_bytes", summary.host_memory_capacity},
          {"parameters", summary.parameters},
          {"model_flops", summary.model_flops},
          {"hardware_flops", summary.hardware_flops},
          {"peak_flops_per_gpu", summary.peak_flops},
          {"single_gpu_time_s", summary.single_gpu_time},
          {"launch_bound_share", summary.launch_bound_share}};
}

Json jitter_json(const std::optional<JitterResult>& jitter) {
  if (!jitter) return nullptr;
  return {{"steps", jitter->steps},     {"seed", jitter->seed},   {"compute", jitter->compute},
          {"network", jitter->network}, {"mean_s", jitter->mean}, {"p50_s", jitter->p50},
          {"p90_s", jitter->p90},       {"p99_s", jitter->p99}};
}

Json uncertainty_json(const std::optional<Uncertainty>& uncertainty) {
  if (!uncertainty) return nullptr;
  Json constants = Json::array();
  for (const ConstantEffect& constant : uncertainty->constants) {
    constants.push_back({{"name", constant.name},
                         {"grade", constant.grade},
                         {"value", constant.value},
                         {"low", constant.low},
                         {"high", constant.high},
                         {"step_time_at_low_s", constant.step_time_low},
                         {"step_time_at_high_s", constant.step_time_high}});
  }
  return {{"step_time_low_s", uncertainty->low},
          {"step_time_high_s", uncertainty->high},
          {"samples", uncertainty->samples},
          {"seed", uncertainty->seed},
          {"constants", std::move(constants)}};
}

/// An assertion taken apart.
struct Assertion {
  std::string path;
  std::string op;
  double bound = 0;
};

Assertion parse(const std::string& text) {
  const std::size_t at = text.find_first_of("<>=!");
  Assertion assertion;
  if (at != std::string::npos) {
    const bool two = at + 1 < text.size() && text[at + 1] == '=';
    assertion.path = trimmed(std::string_view(text).substr(0, at));
    assertion.op = text.substr(at, two ? 2 : 1);
    const std::string bound(trimmed(std::string_view(text).substr(at + assertion.op.size())));
    char* end = nullptr;
    assertion.bound = std::strtod(bound.c_str(), &end);
    const bool known = assertion.op != "=" && assertion.op != "!";
    if (known && !assertion.path.empty() && !bound.empty() && *end == '\0' &&
        std::isfinite(assertion.bound)) {
      return assertion;
    }
  }
  throw InputError(
      "--assert '" + text +
      "': error: not an assertion; write a name of the result, one of <= >= == != < >, and a number, "
      "such as 'bubble_ratio<=0.10'");
}

bool holds(double value, const Assertion& assertion) {
  if (assertion.op == "<=") return value <= assertion.bound;
  if (assertion.op == ">=") return value >= assertion.bound;
  if (assertion.op == "<") return value < assertion.bound;
  if (assertion.op == ">") return value > assertion.bound;
  return (assertion.op == "==") == (value == assertion.bound);
}

std::vector<std::string> numeric_names(const Json& json) {
  std::vector<std::string> names;
  for (const auto& [key, value] : json.items()) {
    if (value.is_number() || value.is_boolean()) names.push_back(key);
    if (!value.is_object()) continue;
    for (const auto& [inner, leaf] : value.items()) {
      if (leaf.is_number() || leaf.is_boolean()) names.push_back(std::string(key).append(".").append(inner));
    }
  }
  return names;
}

[[noreturn]] void fail_unknown(const Json& json, const std::string& text, const std::string& path) {
  const std::vector<std::string> names = numeric_names(json);
  const std::string near = closest_match(path, names);
  const std::string hint = near.empty() ? "the numbers of the result are listed in docs/output.md"
                                        : "did you mean '" + near + "'?";
  throw InputError("--assert '" + text + "': error: the result has no number '" + path + "'; " + hint);
}

/// The number at an assertion's path; throws InputError when there is none.
const Json& number_at(const Json& json, const std::string& text, const Assertion& assertion) {
  const Json* at = &json;
  std::size_t begin = 0;
  while (begin <= assertion.path.size()) {
    const std::size_t end = std::min(assertion.path.find('.', begin), assertion.path.size());
    const std::string key = assertion.path.substr(begin, end - begin);
    const bool digits =
        key.find_first_not_of("0123456789") == std::string::npos && !key.empty() && key.size() < 9;
    const bool index = at->is_array() && digits && std::stoul(key) < at->size();
    if (!(at->is_object() && at->contains(key)) && !index) fail_unknown(json, text, assertion.path);
    at = index ? &(*at)[std::stoul(key)] : &(*at)[key];
    begin = end + 1;
  }
  if (at->is_null()) {
    throw InputError("--assert '" + text + "': error: '" + assertion.path +
                     "' has no value in this result; docs/output.md says when it has one");
  }
  if (!at->is_number() && !at->is_boolean()) fail_unknown(json, text, assertion.path);
  return *at;
}

/// What only plans with context parallelism have; no others mention it.
void add_context(const Summary& summary, Json& json) {
  const char* cause = program::to_string(program::Cause::kContextCommunication);
  if (summary.plan.context_parallel > 1) {
    json["plan"]["context_communication"] = plan::to_string(summary.plan.context_communication);
    for (std::size_t i = 0; i < summary.ranks.size(); ++i)
      json["ranks"][i]["context_rank"] = summary.ranks[i].context_rank;
    return;
  }
  json["breakdown"].erase(cause);
  for (Json& rank : json["ranks"]) rank["breakdown"].erase(cause);
}

}  // namespace

Json to_tree(const Summary& summary) {
  Json json = scalars(summary);
  json["uncertainty"] = uncertainty_json(summary.uncertainty);
  json["sensitivity"] = sensitivity_json(summary);
  json["placement"] = placement_json(summary);
  json["jitter"] = jitter_json(summary.jitter);
  if (summary.run) json["run"] = training_json(*summary.run);
  json["breakdown"] = by_cause(summary.breakdown, summary.model.experts.active());
  json["kernels"] = kernels(summary);
  json["communication"] = transfers_json(summary);
  json["communication_groups"] = groups_json(summary);
  json["links"] = links_json(summary);
  json["contention_s"] = summary.contention ? Json(*summary.contention) : Json(nullptr);
  json["ranks"] = ranks(summary);
  json["plan"] = plan_json(summary);
  add_context(summary, json);
  if (summary.model.experts.active()) {
    json["active_parameters"] = model::active_parameters(summary.model);
    json["plan"]["expert_tensor_parallel"] = summary.plan.expert_tensor();
    json["plan"]["expert_data_parallel"] = summary.plan.expert_data_parallel();
  }
  json["model"] = summary.model.name;
  json["cluster"] = summary.cluster_name;
  json["gpu"] = summary.gpu_name;
  json["gpu_clock_share"] = summary.clock_share;
  json["warnings"] = summary.warnings;
  json["notes"] = summary.notes;
  json["simulation"] = {{"network", summary.network},      {"wall_s", summary.wall_time},
                        {"actors", summary.actors},        {"activities", summary.activities},
                        {"folded", summary.folded},        {"simulated_ranks", summary.ranks.size()},
                        {"world_size", summary.world_size}};
  return json;
}

Json by_category(const program::MemoryByCategory& bytes, bool experts) {
  Json json = Json::object();
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    if (!experts && static_cast<program::MemoryCategory>(c) == program::MemoryCategory::kDispatchBuffers)
      continue;
    json[program::to_string(static_cast<program::MemoryCategory>(c))] = bytes[c];
  }
  return json;
}

std::string to_json(const Summary& summary) {
  return dump(to_tree(summary));
}

void check_assertion_early(const std::string& text) {
  const Assertion assertion = parse(text);
  static constexpr std::array<std::string_view, 7> late_parts = {
      "ranks.", "kernels.",     "communication.", "communication_groups.",
      "links.", "sensitivity.", "placement."};
  const bool late = std::any_of(late_parts.begin(), late_parts.end(),
                                [&](std::string_view part) { return assertion.path.starts_with(part); });
  // Without a closed form the result has null there, which only the run can tell.
  Summary any;
  any.bubble_ratio_theory = 0;
  any.uncertainty = Uncertainty{};
  any.jitter = JitterResult{};
  any.run = complete_run();
  any.plan.global_batch_size = 1;
  any.plan.context_parallel = 2;
  any.model.experts.count = 1;
  if (!late) number_at(to_tree(any), text, assertion);
}

std::string asserted_name(const std::string& text) {
  return parse(text).path;
}

AssertionResult check_assertion(const Summary& summary, const std::string& text) {
  const Assertion assertion = parse(text);
  const Json json = to_tree(summary);
  const Json& at = number_at(json, text, assertion);
  const double value = at.is_boolean() ? (at.get<bool>() ? 1.0 : 0.0) : at.get<double>();
  return {holds(value, assertion), assertion.path + " is " + at.dump() + ", asserted " + assertion.op + " " +
                                       Json(assertion.bound).dump()};
}

}  // namespace trainsim::report
