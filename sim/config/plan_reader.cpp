// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/spec_readers.hpp"

namespace trainsim::config {

namespace {

using plan::ParallelPlan;
using plan::Precision;
using plan::Recompute;
using plan::RecomputeGranularity;
using plan::RecomputeMethod;
using plan::ScheduleKind;
using plan::Sharding;

/// The words for an enumeration, spelt as plan::to_string spells them.
template <class E>
Words<E> words(std::initializer_list<E> values) {
  Words<E> words;
  for (const E value : values) words.emplace_back(to_string(value), value);
  return words;
}

/// Bytes of a gradient element by number format.
const Words<std::int64_t> kGradientFormats = {{"fp32", 4}, {"bf16", 2}, {"fp16", 2}};

constexpr CountRange kDegree = {1, 1'000'000};
constexpr CountRange kBatch = {1, 1'000'000'000'000};
constexpr CountRange kLayers = {1, 100'000};

const std::vector<std::string> kOtherSchedules = {"zb-v", "dualpipe"};

Reader<RecomputeGranularity> as_granularity() {
  return as_choice(words({RecomputeGranularity::kNone, RecomputeGranularity::kSelective,
                          RecomputeGranularity::kOperators, RecomputeGranularity::kFull}));
}

/// Modules of selective recomputation, by Megatron-LM's names.
void read_modules(Section& section, Recompute& recompute) {
  if (section.raw("modules") == nullptr) return;
  if (recompute.granularity != RecomputeGranularity::kSelective) {
    section.fail("modules", "only granularity: selective has a choice of modules; remove this key");
    return;
  }
  using plan::RecomputeModules;
  const Words<bool RecomputeModules::*> names = {{"core_attn", &RecomputeModules::core_attention},
                                                 {"mlp", &RecomputeModules::mlp},
                                                 {"layernorm", &RecomputeModules::norm},
                                                 {"activation", &RecomputeModules::activation},
                                                 {"moe", &RecomputeModules::experts}};
  const Value* modules = section.raw("modules");
  if (modules->kind == Kind::kList && modules->items.empty())
    section.fail(
        "modules",
        "names no module; write some of core_attn, mlp, layernorm, activation, moe, or recompute: none");
  recompute.modules.core_attention = false;
  set_flags(section, "modules", names, recompute.modules);
}

/// Which passes recompute less than the others.
void read_partial(Section& section, Recompute& recompute) {
  for (const char* key : {"partial_micro_batches", "partial_layers"}) {
    if (section.raw(key) != nullptr && recompute.granularity == RecomputeGranularity::kNone)
      section.fail(key,
                   "nothing is recomputed, by no micro-batch; remove this key, or write granularity: full");
  }
  const auto passes = section.optional("partial_micro_batches", as_count(kDegree));
  const auto layers = section.optional("partial_layers", as_count({0, kLayers.most}));
  if (section.raw("partial_layers") != nullptr && section.raw("partial_micro_batches") == nullptr)
    section.fail(
        "partial_layers",
        "says what some micro-batches recompute, and not how many; add partial_micro_batches, or write "
        "method: block with layers for all of them");
  recompute.partial_micro_batches = passes.value_or(0);
  recompute.partial_layers = layers.value_or(0);
}

Recompute read_recompute_mapping(Section section) {
  Recompute recompute;
  recompute.granularity = section.required("granularity", as_granularity());
  const bool full = recompute.granularity == RecomputeGranularity::kFull;
  for (const char* key : {"method", "layers"}) {
    const bool given = section.raw(key) != nullptr;
    if (!given || full || section.raw("granularity") == nullptr) continue;
    section.fail(key,
                 "only granularity: full has a choice of layers; remove this key or write granularity: full");
  }
  const auto methods = as_choice(words({RecomputeMethod::kUniform, RecomputeMethod::kBlock}));
  if (full) {
    recompute.method = section.defaulted("method", methods, "uniform");
    recompute.layers = section.defaulted("layers", as_count(kLayers), "1");
  }
  read_modules(section, recompute);
  read_partial(section, recompute);
  section.finish();
  return recompute;
}

void read_recompute(Section& section, ParallelPlan& plan) {
  const Value* value = section.raw("recompute");
  if (value != nullptr && value->kind == Kind::kMap) {
    plan.recompute = read_recompute_mapping(*section.mapping("recompute", true));
  } else {
    const Words<std::optional<RecomputeGranularity>> legal = {{"none", RecomputeGranularity::kNone},
                                                              {"selective", RecomputeGranularity::kSelective},
                                                              {"operators", RecomputeGranularity::kOperators},
                                                              {"full", RecomputeGranularity::kFull},
                                                              {"auto", std::nullopt}};
    const std::optional<RecomputeGranularity> given =
        section.defaulted("recompute", as_choice(legal), "none");
    plan.recompute.granularity = given.value_or(RecomputeGranularity::kNone);
    plan.recompute.automatic = !given;
  }
}

void read_activation_offload(Section& section, ParallelPlan& plan) {
  std::optional<Section> offload = section.mapping("activation_offload", false);
  if (!offload) return;
  plan.offloaded_layers = offload->required("layers", as_count(kLayers));
  offload->finish();
}

void read_lora(Section& section, ParallelPlan& plan) {
  std::optional<Section> lora = section.mapping("lora", false);
  if (!lora) return;
  plan.lora.rank = lora->required("rank", as_count({1, 1'000'000}));
  if (lora->raw("modules") != nullptr) {
    plan.lora.attention = plan.lora.mlp = false;
    const Words<bool plan::Lora::*> names = {{"attention", &plan::Lora::attention},
                                             {"mlp", &plan::Lora::mlp}};
    set_flags(*lora, "modules", names, plan.lora);
    const Value* modules = lora->raw("modules");
    if (modules->kind == Kind::kList && modules->items.empty())
      lora->fail("modules", "names no module; write attention, mlp or both, or leave plan.lora out");
  }
  lora->finish();
}

/// all, node, or a number of ranks.
Reader<std::int64_t> as_shard_group() {
  const std::string expects = "all, node or a number of data-parallel ranks";
  const auto parse = [expects](const Value& value) {
    using Group = Parsed<std::int64_t>;
    if (const std::string fault = scalar_fault(value, expects, true); !fault.empty())
      return Group::failed(fault);
    if (value.text == "all") return Group::of(0);
    if (value.text == "node") return Group::of(kShardGroupOfNode);
    const Group count = as_count(kDegree).parse(value);
    return count.value ? count : Group::failed("must be " + expects + ", not " + describe(value));
  };
  Form form = as_count(kDegree).form;
  form.words = {"all", "node"};
  return {expects, parse, form};
}

void read_offload(Section& sharding, ParallelPlan& plan) {
  std::optional<Section> section = sharding.mapping("offload", false);
  if (!section) return;
  using plan::OffloadTarget;
  const auto targets = as_choice(words({OffloadTarget::kNone, OffloadTarget::kCpu, OffloadTarget::kNvme}));
  plan.offload.optimizer = section->defaulted("optimizer", targets, "none");
  plan.offload.parameters = section->defaulted("parameters", targets, "none");
  section->finish();
}

/// How FSDP wraps, gathers and prefetches; keys that this stage has no use for are problems.
void read_units(Section& section, ParallelPlan& plan) {
  const bool staged = plan.sharding == Sharding::kZero2 || plan.sharding == Sharding::kZero3;
  for (const char* key : {"unit_layers", "unit_parameters", "gathered_units"}) {
    if (!staged && section.raw(key) != nullptr)
      section.fail(key, "only stages 2 and 3 work unit by unit; remove this key, or write stage: 2 or 3");
  }
  plan::ShardUnits& units = plan.units;
  units.layers = section.optional("unit_layers", as_count({1, 1'000'000})).value_or(1);
  if (section.raw("unit_parameters") != nullptr) {
    if (section.raw("unit_layers") != nullptr)
      section.fail("unit_parameters", "unit_layers says the same in another way; remove one of the two");
    units.parameters = section.optional("unit_parameters", as_count({1, 1'000'000'000'000'000})).value_or(0);
  }
  units.gathered = section.optional("gathered_units", as_count({1, 1'000'000})).value_or(2);
  if (section.raw("backward_prefetch") == nullptr) return;
  using plan::BackwardPrefetch;
  const auto moments =
      as_choice(words({BackwardPrefetch::kPre, BackwardPrefetch::kPost, BackwardPrefetch::kNone}));
  units.backward_prefetch = section.defaulted("backward_prefetch", moments, "pre");
  if (plan.sharding != Sharding::kZero3) {
    section.fail(
        "backward_prefetch",
        "parameters are gathered for backward only with stage 3 that reshards after forward; remove this "
        "key, or write that");
  } else if (units.gathered == 1 && units.backward_prefetch != BackwardPrefetch::kNone) {
    section.fail("backward_prefetch",
                 "with gathered_units: 1 nothing is gathered ahead; write none, or 2 units");
  }
}

void read_sharding_mapping(Section section, ParallelPlan& plan) {
  const Words<Sharding> stages = {
      {"0", Sharding::kNone}, {"1", Sharding::kZero1}, {"2", Sharding::kZero2}, {"3", Sharding::kZero3}};
  plan.sharding = section.required("stage", as_choice(stages));
  plan.shard_group = section.defaulted("group", as_shard_group(), "all");
  if (plan.sharding == Sharding::kNone && plan.shard_group != 0)
    section.fail("group", "stage 0 shards nothing; remove this key, or write another stage");
  if (section.raw("reshard_after_forward") != nullptr) {
    const bool reshard = section.defaulted("reshard_after_forward", as_flag(), "true");
    if (plan.sharding != Sharding::kZero3) {
      section.fail("reshard_after_forward",
                   "only stage 3 gathers parameters for forward; remove this key, or write "
                   "stage: 3");
    } else if (!reshard) {
      // Parameters stay gathered until backward: FSDP's shard_grad_op.
      plan.sharding = Sharding::kZero2;
      plan.keeps_gathered = true;
    }
  }
  read_units(section, plan);
  read_offload(section, plan);
  section.finish();
}

void read_sharding(Section& section, ParallelPlan& plan) {
  const Value* value = section.raw("sharding");
  if (value != nullptr && value->kind == Kind::kMap) {
    read_sharding_mapping(*section.mapping("sharding", true), plan);
  } else {
    Words<Sharding> shardings =
        words({Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3});
    shardings.emplace_back("fsdp", Sharding::kZero3);
    plan.sharding = section.defaulted("sharding", as_choice(shardings), "none");
  }
}

/// The data-parallel degree that uses all GPUs, at least 1.
void read_data_parallel(Section& section, ParallelPlan& plan) {
  const std::int64_t grid = std::max<std::int64_t>(1, plan.replica_gpus());
  const std::int64_t derived = std::max<std::int64_t>(1, plan.gpus / grid);
  plan.data_parallel = section.defaulted("data_parallel", as_count(kDegree), std::to_string(derived));
}

/// The global batch that follows from its factors, when it is not given.
std::int64_t derived_batch(Section& section, const ParallelPlan& plan, std::int64_t accumulation) {
  const std::int64_t batch = plan.micro_batch_size * plan.data_parallel * accumulation;
  if (batch <= kBatch.most) return std::max<std::int64_t>(1, batch);
  section.fail("micro_batch_size", "makes a global batch of " + std::to_string(batch) +
                                       " sequences; at most " + std::to_string(kBatch.most) +
                                       " are possible");
  return kBatch.most;
}

/// Reads the batch's factors and returns the micro-batches per step, if they are given.
std::optional<std::int64_t> read_batch(Section& section, ParallelPlan& plan) {
  plan.micro_batch_size = section.defaulted("micro_batch_size", as_count({1, 1'000'000}), "1");
  // Which of the two is derived is known before either is read; the order is that of the documentation.
  const bool given = section.raw("global_batch_size") != nullptr;
  const std::optional<std::int64_t> accumulation =
      section.optional("gradient_accumulation", as_count(kDegree));
  const std::int64_t derived = given ? 1 : derived_batch(section, plan, accumulation.value_or(1));
  plan.global_batch_size = section.defaulted("global_batch_size", as_count(kBatch), std::to_string(derived));
  if (section.raw("gradient_accumulation") == nullptr) {
    const std::int64_t unit = std::max<std::int64_t>(1, plan.micro_batch_size * plan.data_parallel);
    section.note_default("gradient_accumulation", std::to_string(plan.global_batch_size / unit));
  }
  return accumulation;
}

/// Why three given factors of the batch disagree, and which values would make them agree.
std::string batch_fault(const ParallelPlan& plan, std::int64_t accumulation) {
  const std::int64_t per_rank = plan.micro_batch_size * accumulation;
  const std::int64_t product = per_rank * plan.data_parallel;
  std::string cure = "; write " + std::to_string(product) +
                     ", or leave one of the three out (as with --set plan.global_batch_size=null)";
  if (plan.global_batch_size % per_rank == 0) {
    const std::int64_t ranks = plan.global_batch_size / per_rank;
    const std::int64_t gpus = ranks * plan.replica_gpus();
    cure += "; with data_parallel " + std::to_string(ranks) + " (gpus: " + std::to_string(gpus) +
            ") it would be true";
  }
  return std::to_string(plan.global_batch_size) + " is not micro_batch_size " +
         std::to_string(plan.micro_batch_size) + " x gradient_accumulation " + std::to_string(accumulation) +
         " x data_parallel " + std::to_string(plan.data_parallel) + " = " + std::to_string(product) + cure;
}

/// Compares the batch with its factors. Called last, when it is known which values can be relied on.
void check_batch(Section& section, const ParallelPlan& plan, std::optional<std::int64_t> accumulation) {
  const bool all_given = accumulation && section.raw("global_batch_size") != nullptr;
  const bool reliable =
      section.all_read({"gpus", "plan.tensor_parallel", "plan.context_parallel", "plan.pipeline_parallel",
                        "plan.data_parallel", "plan.micro_batch_size", "plan.global_batch_size"}) &&
      plan.gpus == plan.replica_gpus() * plan.data_parallel;
  if (!all_given || !reliable) return;
  if (plan.global_batch_size == plan.micro_batch_size * *accumulation * plan.data_parallel) return;
  section.fail("global_batch_size", batch_fault(plan, *accumulation));
}

void read_schedule(Section& section, ParallelPlan& plan) {
  const auto schedules =
      as_choice(words({ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved,
                       ScheduleKind::kZeroBubbleH1, ScheduleKind::kZeroBubbleH2}),
                kOtherSchedules);
  plan.schedule =
      section.defaulted("schedule", schedules, plan.virtual_pipeline > 1 ? "interleaved" : "1f1b");
}

void read_fp8(Section& section, ParallelPlan& plan) {
  if (section.raw("fp8") != nullptr && !plan.uses_fp8())
    section.fail("fp8", "only precision: fp8 multiplies in 8 bits; remove this key, or write that");
  std::optional<Section> fp8 = section.mapping("fp8", false);
  if (!fp8) return;
  using plan::Fp8Recipe;
  const auto recipes = as_choice(words({Fp8Recipe::kDelayed, Fp8Recipe::kTensorwise, Fp8Recipe::kRowwise,
                                        Fp8Recipe::kMxfp8, Fp8Recipe::kBlockwise}));
  plan.fp8.recipe = fp8->defaulted("recipe", recipes, "delayed");
  plan.fp8.parameters = fp8->defaulted("parameters", as_flag(), "false");
  fp8->finish();
}

void read_numbers(Section& section, ParallelPlan& plan) {
  const auto formats = as_choice(
      words({Precision::kFp32, Precision::kTf32, Precision::kFp16, Precision::kBf16, Precision::kFp8}));
  plan.precision = section.defaulted("precision", formats, "bf16");
  read_fp8(section, plan);
  using plan::Optimizer;
  const auto optimizers = as_choice(words({Optimizer::kAdam, Optimizer::kAdam8Bit, Optimizer::kLion,
                                           Optimizer::kSgd, Optimizer::kSgdMomentum, Optimizer::kAdafactor}));
  plan.optimizer = section.defaulted("optimizer", optimizers, "adam");
  plan.gradient_bytes = section.defaulted("gradient_dtype", as_choice(kGradientFormats), "fp32");
}

void read_overlap(Section& section, ParallelPlan& plan) {
  plan.overlap_gradient_reduction = section.defaulted("overlap_gradient_reduction", as_flag(), "true");
  plan.overlap_parameter_gather = section.defaulted("overlap_parameter_gather", as_flag(), "false");
  const bool overlaps = plan.schedule == ScheduleKind::kInterleaved || plan.splits_backward();
  plan.overlap_point_to_point =
      section.defaulted("overlap_point_to_point", as_flag(), overlaps ? "true" : "false");
  plan.overlap_tensor_communication = section.defaulted("overlap_tensor_communication", as_flag(), "true");
  plan.scatter_gather_transfers = section.defaulted("scatter_gather_transfers", as_flag(), "true");
  plan.bucket_parameters =
      section.defaulted("bucket_parameters", as_count({1, 1'000'000'000'000'000}), "40M");
}

/// A node's number, or the first and last of several: 3 or 4-7.
Reader<std::vector<std::int64_t>> as_nodes() {
  const std::string expects = "the number of a node, such as 3, or a range, such as 4-7";
  const auto parse = [expects](const Value& value) {
    using Nodes = Parsed<std::vector<std::int64_t>>;
    const std::string fault = scalar_fault(value, expects, true);
    if (!fault.empty()) return Nodes::failed(fault);
    const std::size_t dash = value.text.find('-');
    const auto number = [](const std::string& text) {
      return as_count({0, kDegree.most}).parse(make_scalar(text, {})).value;
    };
    const auto first = number(value.text.substr(0, dash));
    const auto last = dash == std::string::npos ? first : number(value.text.substr(dash + 1));
    if (!first || !last || *last < *first)
      return Nodes::failed("must be " + expects + ", not " + describe(value));
    std::vector<std::int64_t> nodes(static_cast<std::size_t>(*last - *first + 1));
    std::iota(nodes.begin(), nodes.end(), *first);
    return Nodes::of(nodes);
  };
  return {expects, parse};
}

void read_placement(Section& section, ParallelPlan& plan) {
  using plan::Axis;
  Words<plan::RankOrder> orders;
  plan::RankOrder order = {Axis::kTensor, Axis::kData, Axis::kPipeline};
  do {
    orders.emplace_back(to_string(order), order);
  } while (std::next_permutation(order.begin(), order.end()));
  plan.order = section.defaulted("order", as_choice(orders), to_string(plan::kTensorDataPipeline));
  const Value* placement = section.raw("placement");
  if (placement != nullptr && placement->kind == Kind::kList && placement->items.empty())
    section.fail("placement", "names no node; leave it out for the first nodes of the cluster");
  for (const std::vector<std::int64_t>& range : section.list("placement", as_nodes()))
    plan.nodes.insert(plan.nodes.end(), range.begin(), range.end());
}

plan::StageProfile read_times(Section& section) {
  plan::StageProfile times;
  times.forward = section.required("forward", as_quantity(Dimension::kTime));
  times.backward = section.required("backward", as_quantity(Dimension::kTime));
  times.weight = section.optional("weight", as_quantity(Dimension::kTime)).value_or(0);
  if (times.weight > times.backward && times.backward > 0)
    section.fail("weight", "weight gradients are a part of backward, and can't take longer than that");
  times.optimizer = section.optional("optimizer", as_quantity(Dimension::kTime)).value_or(0);
  section.finish();
  return times;
}

void read_profile(Section& section, ParallelPlan& plan) {
  const Value* value = section.raw("profile");
  if (value != nullptr && value->kind == Kind::kList) {
    if (value->items.empty()) section.fail("profile", "names no stage; leave it out, or give times of each");
    for (Section& stage : section.mappings("profile")) plan.profile.push_back(read_times(stage));
  } else if (std::optional<Section> all = section.mapping(
                 "profile", false, "a mapping with the times of all stages, or a list of them")) {
    plan.profile.push_back(read_times(*all));
  }
  if (plan.profile.empty()) return;
  if (plan.recompute.automatic) {
    section.fail("recompute",
                 "auto can't be chosen by times that plan.profile has measured; write what they were "
                 "measured with: none, selective, operators or full");
  }
}

}  // namespace

void read_plan(Section& section, ParallelPlan& plan) {
  plan.tensor_parallel = section.defaulted("tensor_parallel", as_count(kDegree), "1");
  plan.pipeline_parallel = section.defaulted("pipeline_parallel", as_count(kDegree), "1");
  plan.virtual_pipeline = section.defaulted("virtual_pipeline", as_count(kDegree), "1");
  plan.context_parallel = section.defaulted("context_parallel", as_count(kDegree), "1");
  using plan::ContextCommunication;
  const auto exchanges = as_choice(
      words({ContextCommunication::kP2p, ContextCommunication::kAllGather, ContextCommunication::kAllToAll}));
  plan.context_communication = section.defaulted("context_communication", exchanges, "p2p");
  plan.expert_parallel = section.defaulted("expert_parallel", as_count(kDegree), "1");
  plan.expert_tensor_parallel = section.optional("expert_tensor_parallel", as_count(kDegree)).value_or(0);
  read_data_parallel(section, plan);
  plan.sequence_parallel = section.defaulted("sequence_parallel", as_flag(), "false");
  const std::optional<std::int64_t> accumulation = read_batch(section, plan);
  read_schedule(section, plan);
  read_recompute(section, plan);
  read_activation_offload(section, plan);
  read_lora(section, plan);
  read_sharding(section, plan);
  read_numbers(section, plan);
  plan.pipeline_layout = section.list("pipeline_layout", as_count({0, kLayers.most}));
  // The model's reader has taken the value already; here it only is a key to know and to check.
  section.optional("sequence_length", as_count(kSequenceRange));
  plan.vocab_padding = section.defaulted("vocab_padding", as_count({1, 1'000'000}), "128");
  read_overlap(section, plan);
  read_placement(section, plan);
  read_profile(section, plan);
  section.finish();
  check_batch(section, plan, accumulation);
}

}  // namespace trainsim::config
