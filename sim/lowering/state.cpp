// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/lowering/layer.hpp"
#include "sim/lowering/lower.hpp"

namespace trainsim::lowering {

namespace {

using plan::Framework;
using plan::OffloadTarget;
using plan::Sharding;
using program::MemoryCategory;

/// Parameters that DeepSpeed gathers into one bucket before it reduces them (its reduce_bucket_size).
constexpr std::int64_t kDeepSpeedBucket = 500'000'000;

/// Collects the state of one rank.
class StateList {
 public:
  explicit StateList(const plan::ParallelPlan& plan) : plan_(plan) {}

  /// `bytes` for each of `parameters`, sharded from a stage of ZeRO on.
  void add(const std::string& name, MemoryCategory category, std::int64_t parameters, double bytes,
           Sharding from) {
    const std::int64_t held = shard_of(parameters, plan_.sharding >= from, plan_);
    add_bytes(name, category, static_cast<Bytes>(std::llround(bytes * static_cast<double>(held))));
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
void add_offloaded_gradients(StateList& state, const plan::ParallelPlan& plan, std::int64_t trained) {
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
void add_gradients(StateList& state, const plan::ParallelPlan& plan, std::int64_t trained) {
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

/// Parameters of the pieces that a rank's shard is made of: a piece of every weight for FSDP, else a stretch
/// of weights from the model's end, where contiguous buffers begin.
std::vector<std::int64_t> shard_pieces(const plan::ParallelPlan& plan, std::int64_t parameters,
                                       const std::vector<std::int64_t>& weights) {
  std::int64_t left = shard_of(parameters, plan.sharding >= Sharding::kZero1, plan);
  std::vector<std::int64_t> pieces;
  for (auto weight = weights.rbegin(); weight != weights.rend() && left > 0; ++weight) {
    const bool of_each = plan.framework == Framework::kFsdp;
    const std::int64_t piece =
        std::min(left, shard_of(*weight, of_each && plan.sharding >= Sharding::kZero1, plan));
    pieces.push_back(piece);
    left -= piece;
  }
  return pieces;
}

/// Adam has two moments, each in a tensor of its own.
void add_moments(StateList& state, const plan::ParallelPlan& plan, std::int64_t parameters,
                 const std::vector<std::int64_t>& weights) {
  const double bytes = moment_bytes(plan.optimizer);
  const bool two = plan.optimizer == plan::Optimizer::kAdam || plan.optimizer == plan::Optimizer::kAdam8Bit;
  int part = 0;
  for (const std::int64_t piece : shard_pieces(plan, parameters, weights)) {
    const Bytes whole = std::llround(bytes * static_cast<double>(piece));
    const Bytes first = two ? whole / 2 : whole;
    for (const Bytes moment : {first, whole - first}) {
      state.add_bytes("optimizer moments, part " + std::to_string(++part), MemoryCategory::kOptimizerState,
                      moment, true);
    }
  }
}

/// Distinct shapes of a layer's weights, in bytes of compute precision.
Bytes stand_in_bytes(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const LinearShape& linear : layer_linears(model, plan)) shapes.emplace(linear.out, linear.in);
  Bytes bytes = 0;
  for (const auto& [out, in] : shapes) bytes += out * in * plan.element_bytes();
  return bytes;
}

}  // namespace

std::int64_t shard_of(std::int64_t count, bool sharded, const plan::ParallelPlan& plan) {
  return sharded ? (count + plan.shard_ranks() - 1) / plan.shard_ranks() : count;
}

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
  plan::ParallelPlan whole = plan;
  whole.tensor_parallel = whole.pipeline_parallel = whole.virtual_pipeline = 1;
  whole.pipeline_layout.clear();
  const auto trained = static_cast<double>(trained_stage_parameters(model, whole, 0));
  const bool both = plan.precision != plan::Precision::kFp32 && plan.framework != Framework::kFsdp;
  const double copy = both ? static_cast<double>(plan.element_bytes()) : 0.0;
  return std::llround(trained * (4.0 + copy + moment_bytes(plan.optimizer)));
}

std::vector<std::int64_t> weights_of_stage(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                           std::int64_t stage) {
  std::int64_t left = trained_stage_parameters(model, plan, stage);
  std::vector<std::int64_t> weights;
  const auto add = [&](std::int64_t parameters) {
    if (parameters > 0) weights.push_back(parameters);
    left -= parameters;
  };
  if (stage == 0) add(trained_of(embedding_parameters_per_rank(model, plan), plan));
  std::int64_t small = trained_layer_parameters_per_rank(model, plan);
  std::array<std::int64_t, 4> large{};
  for (std::size_t i = 0; i < large.size(); ++i) {
    const LinearShape linear = layer_linears(model, plan)[i];
    large[i] =
        linear.adapted ? plan.lora.rank * (linear.in + linear.out) : trained_of(linear.in * linear.out, plan);
    small -= large[i];
  }
  const bool last = stage == plan.pipeline_parallel - 1;
  const std::int64_t head =
      last ? trained_of(head_parameters_per_rank(model, plan, plan.pipeline_parallel > 1), plan) : 0;
  while (left > head) {
    for (const std::int64_t weight : large) add(weight);
    add(small);
  }
  if (left > 0) add(left);
  return weights;
}

std::vector<StateTensor> state_tensors(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                       std::int64_t stage) {
  const std::int64_t parameters = stage_parameters(model, plan, stage);
  const std::int64_t trained = trained_stage_parameters(model, plan, stage);
  StateList state(plan);
  const auto element = static_cast<double>(plan.element_bytes());
  const bool fp32 = plan.precision == plan::Precision::kFp32;
  if (plan.framework == Framework::kFsdp) {
    // Frozen weights stay in compute precision.
    state.put(plan.offload.parameters);
    state.add("parameters in fp32", MemoryCategory::kParameters, trained, 4.0, Sharding::kZero2);
    state.add("frozen parameters", MemoryCategory::kParameters, parameters - trained, element,
              Sharding::kZero2);
    state.put_gradients(plan.offload.optimizer);
    state.add("gradients in fp32", MemoryCategory::kGradients, trained, 4.0, Sharding::kZero2);
  } else {
    state.put(plan.offload.parameters);
    state.add("parameters", MemoryCategory::kParameters, parameters, element, Sharding::kZero3);
    state.put(OffloadTarget::kNone);
    add_gradients(state, plan, trained);
    state.put(plan.offload.optimizer);
    if (!fp32)
      state.add("master parameters", MemoryCategory::kOptimizerState, trained, 4.0, Sharding::kZero1);
  }
  state.put(plan.offload.optimizer);
  add_moments(state, plan, trained, weights_of_stage(model, plan, stage));
  state.put(OffloadTarget::kNone);
  if (plan.framework == Framework::kDeepSpeed && plan.sharding != Sharding::kNone) {
    // Two, of which one fills while the other is reduced.
    const auto bucket = static_cast<double>(std::min(trained, kDeepSpeedBucket));
    state.add_bytes("reduction buckets", MemoryCategory::kCommunicationBuffers,
                    static_cast<Bytes>(2.0 * bucket * element), true);
  }
  if (plan.transformer_engine && plan.gradient_accumulation_fusion && !plan.lora.active()) {
    state.add_bytes("stand-ins for weight gradients", MemoryCategory::kTemporary, stand_in_bytes(model, plan),
                    true);
  }
  return state.take();
}

Bytes host_state_bytes(const model::ModelSpec& model, const plan::ParallelPlan& plan, std::int64_t stage) {
  Bytes bytes = 0;
  for (const StateTensor& tensor : state_tensors(model, plan, stage)) {
    if (tensor.place == StatePlace::kHost) bytes += tensor.bytes;
  }
  return bytes;
}

Bytes host_memory_of_fullest_node(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                  const hardware::ClusterSpec& cluster) {
  if (!plan.offload.active()) return 0;
  std::vector<Bytes> by_stage;
  by_stage.reserve(static_cast<std::size_t>(plan.pipeline_parallel));
  for (std::int64_t stage = 0; stage < plan.pipeline_parallel; ++stage)
    by_stage.push_back(host_state_bytes(model, plan, stage));
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
