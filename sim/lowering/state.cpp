// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/state.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/lowering/checkpointing.hpp"
#include "sim/lowering/experts.hpp"
#include "sim/lowering/fp8.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/lowering/layer_tape.hpp"
#include "sim/lowering/lower.hpp"

namespace trainsim::lowering {

namespace {

using plan::Framework;
using plan::OffloadTarget;
using plan::Sharding;
using program::MemoryCategory;

/// Parameters that DeepSpeed gathers into one bucket before it reduces them (its reduce_bucket_size).
constexpr std::int64_t kDeepSpeedBucket = 500'000'000;

/// Parameters of a rank before they are sharded.
struct Held {
  /// All but routed experts, which fewer ranks share.
  std::int64_t shared = 0;
  std::int64_t experts = 0;
};

/// Collects the state of one rank.
class StateList {
 public:
  explicit StateList(const plan::ParallelPlan& plan) : plan_(plan) {}

  /// `bytes` for each of `parameters`, sharded from a stage of ZeRO on.
  void add(const std::string& name, MemoryCategory category, const Held& parameters, double bytes,
           Sharding from) {
    const bool sharded = plan_.sharding >= from;
    const std::int64_t held = share_of(parameters.shared, sharded ? plan_.shard_ranks() : 1) +
                              share_of(parameters.experts, sharded ? plan_.expert_shard_ranks() : 1);
    add_bytes(name, category, static_cast<Bytes>(std::llround(bytes * static_cast<double>(held))));
  }
  /// The optimizer's `bytes` for each parameter of the fullest rank's share.
  void add_shard(const std::string& name, const Owned& owned, double bytes) {
    const auto held = static_cast<double>(fullest_shard(plan_, owned));
    add_bytes(name, MemoryCategory::kOptimizerState, std::llround(bytes * held));
  }
  void add_bytes(const std::string& name, MemoryCategory category, Bytes bytes, bool made_in_step = false) {
    if (bytes > 0) tensors_.push_back({name, category, bytes, made_in_step, place_});
  }
  /// What is added from now on is there.
  void put(OffloadTarget target) {
    place_ = target == OffloadTarget::kNone  ? StatePlace::kDevice
             : target == OffloadTarget::kCpu ? StatePlace::kHost
                                             : StatePlace::kDisk;
  }
  /// Gradients that an optimizer on the host is about to read are in its memory, wherever its own state is.
  void put_gradients(OffloadTarget optimizer) {
    place_ = optimizer == OffloadTarget::kNone ? StatePlace::kDevice : StatePlace::kHost;
  }
  std::vector<StateTensor> take() { return std::move(tensors_); }

 private:
  const plan::ParallelPlan& plan_;
  StatePlace place_ = StatePlace::kDevice;
  std::vector<StateTensor> tensors_;
};

/// Gradients whose optimizer is on the host: there in fp32, one shard of them. On the device Megatron-LM
/// keeps its buffer, DeepSpeed with ZeRO-1 the gradients in compute precision until they are reduced, and
/// nothing from ZeRO-2 on.
void add_offloaded_gradients(StateList& state, const plan::ParallelPlan& plan, const Held& trained) {
  if (plan.framework == Framework::kMegatron) {
    state.add("main gradients", MemoryCategory::kMainGradients, trained,
              static_cast<double>(plan.gradient_bytes), Sharding::kZero2);
  } else if (plan.sharding == Sharding::kZero1) {
    state.add("gradients", MemoryCategory::kGradients, trained, static_cast<double>(plan.element_bytes()),
              Sharding::kZero2);
  }
  state.put_gradients(plan.offload.optimizer);
  state.add("gradients on the host", MemoryCategory::kMainGradients, trained, 4.0, Sharding::kZero1);
  state.put(OffloadTarget::kNone);
}

/// Megatron-LM's multiplies add to the fp32 sums directly; DeepSpeed keeps low-precision gradients beside
/// them.
void add_gradients(StateList& state, const plan::ParallelPlan& plan, const Held& trained) {
  const OffloadTarget optimizer = plan.offload.optimizer;
  if (optimizer != OffloadTarget::kNone) {
    add_offloaded_gradients(state, plan, trained);
    return;
  }
  const bool sums = plan.gradient_bytes > plan.element_bytes();
  if (sums && plan.framework == Framework::kDeepSpeed) {
    state.add("gradients", MemoryCategory::kGradients, trained, static_cast<double>(plan.element_bytes()),
              Sharding::kZero2);
  }
  state.add(sums ? "main gradients" : "gradients",
            sums ? MemoryCategory::kMainGradients : MemoryCategory::kGradients, trained,
            static_cast<double>(plan.gradient_bytes), Sharding::kZero2);
}

/// Adam has two moments, each in a tensor of its own; InternEvo's are those of one tensor of all weights.
void add_moments(StateList& state, const plan::ParallelPlan& plan, const Owned& owned,
                 const std::string& name) {
  const double bytes = moment_bytes(plan.optimizer);
  const bool two = plan.optimizer == plan::Optimizer::kAdam || plan.optimizer == plan::Optimizer::kAdam8Bit;
  int part = 0;
  const bool flat = plan.framework == Framework::kInternEvo && plan.sharding != Sharding::kZero3;
  const std::vector<std::int64_t> pieces =
      flat ? std::vector{fullest_shard(plan, owned)} : shard_pieces(plan, owned);
  for (const std::int64_t piece : pieces) {
    const Bytes whole = std::llround(bytes * static_cast<double>(piece));
    const Bytes first = two ? whole / 2 : whole;
    for (const Bytes moment : {first, whole - first}) {
      state.add_bytes(name + ", part " + std::to_string(++part), MemoryCategory::kOptimizerState, moment,
                      true);
    }
  }
}

/// Distinct shapes of the weights of a stage's layers, in bytes of compute precision.
Bytes stand_in_bytes(const model::ModelSpec& model, const plan::ParallelPlan& plan, std::int64_t stage) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  const std::vector<model::LayerKind> kinds = stage_layer_kinds(model, plan, stage);
  const auto holds = [&kinds](model::LayerKind kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  for (const model::LayerKind kind : {model::LayerKind::kDense, model::LayerKind::kExpert}) {
    if (kind == model::LayerKind::kExpert ? !holds(kind) : model.experts.active() && !holds(kind)) continue;
    for (const LinearShape& linear : layer_linears(model, plan, kind)) {
      for (const LinearShape& module : linear.apart()) shapes.emplace(module.out, module.in);
    }
    for (const LinearShape& linear : latent_linears(model, plan)) shapes.emplace(linear.out, linear.in);
    if (kind == model::LayerKind::kDense) continue;
    for (const LinearShape& linear : expert_linears(model, plan)) shapes.emplace(linear.out, linear.in);
  }
  Bytes bytes = 0;
  for (const auto& [out, in] : shapes) bytes += out * in * plan.element_bytes();
  return bytes;
}

}  // namespace

double moment_bytes(plan::Optimizer optimizer) {
  switch (optimizer) {
    case plan::Optimizer::kAdam:
      return 8.0;
    case plan::Optimizer::kAdam8Bit:
      return 2.0 * (1.0 + 4.0 / 256.0);
    case plan::Optimizer::kLion:
    case plan::Optimizer::kSgdMomentum:
      return 4.0;
    case plan::Optimizer::kSgd:
    case plan::Optimizer::kAdafactor:
      return 0.0;
  }
  return 0.0;
}

Bytes checkpoint_bytes(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  const auto trained = static_cast<double>(trained_stage_parameters(model, plan::undivided(plan), 0));
  const bool both = !plan.stores_fp32() && plan.framework != Framework::kFsdp;
  const double copy = both ? static_cast<double>(plan.element_bytes()) : 0.0;
  return std::llround(trained * (4.0 + copy + moment_bytes(plan.optimizer)));
}

namespace {

/// Trained weights of a layer but those of routed experts.
void add_weights_of_layer(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                          model::LayerKind kind, std::vector<std::int64_t>& weights) {
  std::int64_t small = trained_layer_parameters_per_rank(model, plan, kind);
  if (kind == model::LayerKind::kExpert) small -= expert_parameters_per_rank(model, plan);
  std::vector<LinearShape> linears = latent_linears(model, plan);
  for (const LinearShape& linear : layer_linears(model, plan, kind)) {
    for (const LinearShape& module : linear.apart()) linears.push_back(module);
  }
  for (const LinearShape& linear : linears) {
    const std::int64_t large =
        linear.adapted ? plan.lora.rank * (linear.in + linear.out) : trained_of(linear.in * linear.out, plan);
    weights.push_back(large);
    small -= large;
  }
  const std::int64_t norms = plan.framework == Framework::kInternEvo ? 2 : 1;
  weights.insert(weights.end(), static_cast<std::size_t>(norms), small / norms);
}

}  // namespace

Owned shared_weights(const model::ModelSpec& model, const plan::ParallelPlan& plan, std::int64_t stage) {
  Owned owned{trained_stage_parameters(model, plan, stage) - stage_expert_parameters(model, plan, stage),
              {},
              plan.shard_ranks()};
  if (stage == 0) owned.weights.push_back(trained_of(embedding_parameters_per_rank(model, plan), plan));
  for (const model::LayerKind kind : stage_layer_kinds(model, plan, stage))
    add_weights_of_layer(model, plan, kind, owned.weights);
  if (stage == plan.pipeline_parallel - 1) {
    owned.weights.push_back(
        trained_of(head_parameters_per_rank(model, plan, plan.pipeline_parallel > 1), plan));
  }
  std::erase_if(owned.weights, [](std::int64_t parameters) { return parameters <= 0; });
  return owned;
}

Owned expert_weights(const model::ModelSpec& model, const plan::ParallelPlan& plan, std::int64_t stage) {
  Owned owned{stage_expert_parameters(model, plan, stage), {}, plan.expert_shard_ranks()};
  if (owned.parameters == 0) return owned;
  const std::vector<model::LayerKind> kinds = stage_layer_kinds(model, plan, stage);
  const auto layers = std::count(kinds.begin(), kinds.end(), model::LayerKind::kExpert);
  const std::int64_t experts = layers * ExpertShapes(model, plan).local;
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    for (const LinearShape& linear : expert_linears(model, plan))
      owned.weights.push_back(linear.in * linear.out + (model.linear_bias ? linear.out : 0));
  }
  return owned;
}

namespace {

/// One copy in rows for forward, and one in columns for input gradients.
void add_fp8_weights(StateList& state, const plan::ParallelPlan& plan, std::int64_t parameters) {
  const double bytes = 2.0 * fp8_element_bytes(plan.fp8.recipe) * static_cast<double>(parameters);
  state.add_bytes("weights in 8 bits", MemoryCategory::kParameters, std::llround(bytes));
}

/// Megatron-LM makes one of each weight, or of the rank's piece of it; DeepSpeed has all of them in one.
void add_masters(StateList& state, const plan::ParallelPlan& plan, const Owned& owned,
                 const std::string& name) {
  if (plan.framework != Framework::kMegatron) {
    state.add_shard(name, owned, 4.0);
    return;
  }
  int part = 0;
  for (const std::int64_t piece : shard_pieces(plan, owned)) {
    state.add_bytes(name + ", part " + std::to_string(++part), MemoryCategory::kOptimizerState, 4 * piece);
  }
}

}  // namespace

std::vector<StateTensor> state_tensors(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                       std::int64_t stage) {
  const std::int64_t all = stage_parameters(model, plan, stage);
  const Owned experts = expert_weights(model, plan, stage);
  const Owned shared = shared_weights(model, plan, stage);
  const std::int64_t all_trained = shared.parameters + experts.parameters;
  const Held trained{shared.parameters, experts.parameters};
  StateList state(plan);
  const auto element = static_cast<double>(plan.element_bytes());
  if (plan.framework == Framework::kFsdp) {
    // Frozen weights stay in compute precision.
    state.put(plan.offload.parameters);
    state.add("parameters in fp32", MemoryCategory::kParameters, trained, 4.0, Sharding::kZero2);
    state.add("frozen parameters", MemoryCategory::kParameters, {all - all_trained, 0}, element,
              Sharding::kZero2);
    state.put_gradients(plan.offload.optimizer);
    state.add("gradients in fp32", MemoryCategory::kGradients, trained, 4.0, Sharding::kZero2);
  } else {
    state.put(plan.offload.parameters);
    const Fp8Parameters low =
        plan.fp8.parameters ? fp8_stage_parameters(model, plan, stage) : Fp8Parameters{};
    state.add("parameters", MemoryCategory::kParameters,
              {all - experts.parameters - low.shared, experts.parameters - low.experts}, element,
              Sharding::kZero3);
    state.put(OffloadTarget::kNone);
    add_fp8_weights(state, plan, low.total() + fp8_copied_parameters(model, plan, stage));
    add_gradients(state, plan, trained);
    state.put(plan.offload.optimizer);
    if (!plan.stores_fp32()) {
      add_masters(state, plan, shared, "master parameters");
      add_masters(state, plan, experts, "master parameters of experts");
    }
  }
  state.put(plan.offload.optimizer);
  add_moments(state, plan, shared, "optimizer moments");
  add_moments(state, plan, experts, "optimizer moments of experts");
  state.put(OffloadTarget::kNone);
  if (plan.framework == Framework::kDeepSpeed && plan.sharding != Sharding::kNone) {
    // Two, of which one fills while the other is reduced.
    const auto bucket = static_cast<double>(std::min(all_trained, kDeepSpeedBucket));
    state.add_bytes("reduction buckets", MemoryCategory::kCommunicationBuffers,
                    static_cast<Bytes>(2.0 * bucket * element), true);
  }
  if (plan.transformer_engine && plan.gradient_accumulation_fusion && !plan.lora.active()) {
    state.add_bytes("stand-ins for weight gradients", MemoryCategory::kTemporary,
                    stand_in_bytes(model, plan, stage), true);
  }
  return state.take();
}

std::vector<Bytes> initial_weights(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                   std::int64_t stage) {
  // With ZeRO-2 and -3 weights are made and sharded unit by unit.
  const bool buffer = plan.framework == Framework::kMegatron && plan.sharding == Sharding::kZero1;
  if (!buffer || plan.lora.active() || plan.fp8.parameters) return {};
  std::vector<Bytes> bytes;
  for (const Owned& owned : {shared_weights(model, plan, stage), expert_weights(model, plan, stage)}) {
    for (const std::int64_t weight : owned.weights) bytes.push_back(weight * plan.element_bytes());
  }
  return bytes;
}

Bytes host_state_bytes(const model::ModelSpec& model, const plan::ParallelPlan& plan, std::int64_t stage) {
  Bytes bytes = 0;
  for (const StateTensor& tensor : state_tensors(model, plan, stage)) {
    if (tensor.place == StatePlace::kHost) bytes += tensor.bytes;
  }
  return bytes;
}

namespace {

/// What the offloaded layers keep of all micro-batches in flight. There is one stage; only GPipe has more
/// than one.
Bytes host_activation_bytes(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  Bytes bytes = 0;
  for (std::int64_t layer = 0; layer < plan.offloaded_layers; ++layer) {
    const Tape tape = layer_tape(model, plan, model.kind_of(layer));
    bytes += tape.kept(kept_of(plan.recompute, layer));
  }
  return bytes * (plan.schedule == plan::ScheduleKind::kGpipe ? plan.micro_batches() : 1);
}

}  // namespace

Bytes host_memory_of_fullest_node(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                  const hardware::ClusterSpec& cluster) {
  if (!plan.uses_host()) return 0;
  std::vector<Bytes> by_stage;
  by_stage.reserve(static_cast<std::size_t>(plan.pipeline_parallel));
  for (std::int64_t stage = 0; stage < plan.pipeline_parallel; ++stage)
    by_stage.push_back(host_state_bytes(model, plan, stage) + host_activation_bytes(model, plan));
  std::map<std::int64_t, Bytes> by_node;
  Bytes most = 0;
  for (std::int64_t rank = 0; rank < plan.gpus; ++rank) {
    const std::int64_t node = plan::gpu_of(plan, rank, cluster.gpus_per_node) / cluster.gpus_per_node;
    by_node[node] += by_stage[static_cast<std::size_t>(plan::coordinates_of(plan, rank).stage)];
    most = std::max(most, by_node[node]);
  }
  return most;
}

}  // namespace trainsim::lowering
