// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.hpp"
#include "sim/base/op_class.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/model/model_spec.hpp"

namespace trainsim::plan {

/// Pipeline schedule. The zero-bubble ones (Qi et al. 2023, arXiv 2401.10241) put weight gradients off.
enum class ScheduleKind { kGpipe, kOneFOneB, kInterleaved, kZeroBubbleH1, kZeroBubbleH2 };
/// What backward recomputes. Selective recomputes parts of a layer, as Megatron-LM names them; kOperators all
/// but the outputs of operators that a list names, as PyTorch's selective checkpoint does with torchtitan's
/// list: fused attention, reduce-scatters and every other multiply.
enum class RecomputeGranularity { kNone, kSelective, kOperators, kFull };
/// Which layers full recomputation covers: every `layers`-th boundary is kept (uniform), or the first
/// `layers` layers of each stage are recomputed and the rest are not (block). Megatron-LM's
/// --recompute-method.
enum class RecomputeMethod { kUniform, kBlock };
/// Number format of parameters and activations. With tf32 they are in fp32, and tensor cores multiply 19 bits
/// of each (PyTorch's `allow_tf32`, on by default in NVIDIA's containers). With fp8 the linear layers of the
/// model's layers multiply in 8 bits, and everything else is in bf16 (Micikevicius et al. 2022, "FP8 formats
/// for deep learning", arXiv 2209.05433).
enum class Precision { kFp32, kTf32, kFp16, kBf16, kFp8 };
/// Where the scales of 8-bit tensors come from (Megatron-LM's --fp8-recipe, torchao's recipes): from the
/// tensors of steps before, from the whole tensor at hand, from each of its rows, from blocks of 32 elements
/// (microscaling), or from blocks of 128 (DeepSeek-V3).
enum class Fp8Recipe { kDelayed, kTensorwise, kRowwise, kMxfp8, kBlockwise };
/// How 8-bit multiplies are fed.
struct Fp8 {
  Fp8Recipe recipe = Fp8Recipe::kDelayed;
  /// Whether weights are held, and gathered, in 8 bits, instead of being cast from bf16 ones (Megatron-LM's
  /// --fp8-param-gather).
  bool parameters = false;
};
/// What data-parallel ranks hold a shard of instead of the whole: nothing, the optimizer state (ZeRO-1),
/// gradients too (ZeRO-2; parameters are gathered once per micro-batch, as FSDP's shard_grad_op does, in a
/// pipeline once per step), or all three (ZeRO-3, FSDP's full_shard).
enum class Sharding { kNone, kZero1, kZero2, kZero3 };
/// How kernels reach the GPU: from eager PyTorch, from a compiled model, as replayed CUDA graphs, or from
/// eager PyTorch that waits for each kernel to end (CUDA_LAUNCH_BLOCKING=1).
enum class Launch { kEager, kCompiled, kCudaGraph, kBlocking };
/// How far chains of element-wise kernels are merged: not at all, as Megatron-LM's fused kernels do
/// (bias+GELU, bias+dropout+add, scale+mask+softmax, fused norms), or as a compiler would.
enum class Fusion { kNone, kStandard, kCompiled };

/// Whose memory management a run has: Megatron-LM's (one contiguous gradient buffer, loss in place),
/// PyTorch's FSDP or DDP (fp32 shards of parameters, low-precision copies while they are used), or
/// DeepSpeed's (low precision parameters with fp32 copies in the optimizer, reduction buckets), or
/// InternEvo's (low precision everywhere but in the optimizer, whose state ZeRO-1 deals out by whole
/// weights).
enum class Framework { kMegatron, kFsdp, kDeepSpeed, kInternEvo };
/// How the cross-entropy of the logits is computed: as the framework's own kernels do, in fp32 tensors as
/// large as the logits; by one kernel that keeps the logits and writes their gradient in their place
/// (Transformer Engine, flash-attention's); or by PyTorch's cross-entropy, compiled, which keeps the logits
/// and makes their gradient from them, without tensors in fp32.
enum class Loss { kStandard, kFused, kCompiled };
/// What the optimizer keeps for each parameter beside the fp32 parameter itself.
enum class Optimizer { kAdam, kAdam8Bit, kLion, kSgd, kSgdMomentum, kAdafactor };

/// When backward starts to gather the unit that it needs next (FSDP's BackwardPrefetch): as it begins with
/// the unit at hand, as it ends with it, or only when it needs it.
enum class BackwardPrefetch { kPre, kPost, kNone };

/// How ZeRO-2 and ZeRO-3 cut a model into units that are gathered and scattered as a whole.
struct ShardUnits {
  /// Layers of a unit, >= 1; or, if `parameters` is not 0, as few layers as have that many on a rank.
  std::int64_t layers = 1;
  std::int64_t parameters = 0;
  /// Units that may be gathered at a time, >= 1: with 1 nothing is gathered ahead.
  std::int64_t gathered = 2;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::kPre;
};

/// Where state is that a GPU does not hold: in its node's memory, or on its node's disks.
enum class OffloadTarget { kNone, kCpu, kNvme };

/// State that lives on the host (ZeRO-Offload, Ren et al. 2021, arXiv 2101.06840; ZeRO-Infinity, Rajbhandari
/// et al. 2021, arXiv 2104.07857; FSDP's CPUOffload).
struct Offload {
  /// Master parameters, moments and the gradients that they are updated with; the CPUs do the update.
  OffloadTarget optimizer = OffloadTarget::kNone;
  /// Shards of parameters, which are copied to the GPU each time they are gathered.
  OffloadTarget parameters = OffloadTarget::kNone;
  bool active() const { return optimizer != OffloadTarget::kNone || parameters != OffloadTarget::kNone; }
};

/// What ranks are counted along.
enum class Axis { kTensor, kData, kPipeline };
/// Axes (context-parallel ranks come right after tensor-parallel ones) from the innermost, whose neighbours
/// have consecutive ranks, to the outermost.
using RankOrder = std::array<Axis, 3>;
/// Megatron-LM's order, and that with its --use-tp-pp-dp-mapping.
inline constexpr RankOrder kTensorDataPipeline = {Axis::kTensor, Axis::kData, Axis::kPipeline};
inline constexpr RankOrder kTensorPipelineData = {Axis::kTensor, Axis::kPipeline, Axis::kData};

/// How ranks that share a sequence exchange what attention needs of each other (Megatron-LM's
/// --cp-comm-type).
enum class ContextCommunication {
  /// Keys and values go around a ring of ranks while attention works on those at hand (Liu et al. 2023, "Ring
  /// Attention", arXiv 2310.01889).
  kP2p,
  /// Keys and values of all ranks are gathered before attention (Llama 3, section 3.3.2).
  kAllGather,
  /// Attention is split by heads instead of tokens, between two all-to-alls (Jacobs et al. 2023, "DeepSpeed
  /// Ulysses", arXiv 2309.14509).
  kAllToAll,
};

/// Linear layers that take the same input and are one multiply, of a weight put together.
struct FusedLinears {
  /// Those of queries, keys and values.
  bool qkv = true;
  /// Both of a gated MLP.
  bool mlp = true;
  bool operator==(const FusedLinears&) const = default;
};

/// Low-rank adapters that are trained beside frozen weights (Hu et al. 2021, arXiv 2106.09685).
struct Lora {
  /// Rank of an adapter, r; 0 = no adapters, all weights are trained.
  std::int64_t rank = 0;
  /// Which linear layers have one: those of attention, and those of the MLP.
  bool attention = true;
  bool mlp = true;
  bool active() const { return rank > 0; }
};

/// Parts of a layer that selective recomputation runs again.
struct RecomputeModules {
  /// Scores, softmax, dropout and values.
  bool core_attention = true;
  /// The whole MLP.
  bool mlp = false;
  /// Both norms, whose outputs are dropped after their use.
  bool norm = false;
  /// The activation, the same.
  bool activation = false;
  /// Router, exchange and experts of layers that have them.
  bool experts = false;
};

struct Recompute {
  RecomputeGranularity granularity = RecomputeGranularity::kNone;
  RecomputeMethod method = RecomputeMethod::kUniform;
  /// Layers per checkpoint (uniform) or recomputed layers per stage (block); >= 1.
  std::int64_t layers = 1;
  /// Of selective recomputation.
  RecomputeModules modules = {};
  /// Whether the least that fits is still to be chosen; nothing is recomputed until then.
  bool automatic = false;
  /// Of the passes that are in flight on a stage, how many recompute no more than the first `partial_layers`
  /// layers of their chunk, while the others do what is said above (Megatron-LM's
  /// num_microbatches_with_partial_activation_checkpoints; Korthikanti et al. 2022, appendix C); 0 = all
  /// passes are alike.
  std::int64_t partial_micro_batches = 0;
  std::int64_t partial_layers = 0;
  /// Whether recomputation is selective and of this module.
  bool repeats(bool RecomputeModules::*module) const {
    return granularity == RecomputeGranularity::kSelective && modules.*module;
  }
  bool by_operators() const { return granularity == RecomputeGranularity::kOperators; }
};

/// Measured times that replace the cost model: seconds of one micro-batch on one stage, all its chunks
/// together.
struct StageProfile {
  Seconds forward = 0;
  /// The whole backward, weight gradients included.
  Seconds backward = 0;
  /// What of that weight gradients take; 0 = not measured.
  Seconds weight = 0;
  /// The optimizer's step on one rank, without communication; 0 = not measured.
  Seconds optimizer = 0;
};

/// A parallelism plan, resolved: every field has its final value.
struct ParallelPlan {
  std::int64_t gpus = 1;
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  /// Model chunks per pipeline rank; 1 = not interleaved.
  std::int64_t virtual_pipeline = 1;
  /// Ranks that share each sequence: every one holds as many of its tokens, and all parameters.
  std::int64_t context_parallel = 1;
  ContextCommunication context_communication = ContextCommunication::kP2p;
  std::int64_t data_parallel = 1;
  /// Ranks of a stage that share the experts of a layer among them (Megatron-LM's expert model parallelism).
  std::int64_t expert_parallel = 1;
  /// Ranks that share one expert: tensor_parallel or 1; 0 = tensor_parallel.
  std::int64_t expert_tensor_parallel = 0;
  bool sequence_parallel = false;
  std::int64_t micro_batch_size = 1;
  std::int64_t global_batch_size = 1;
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  Recompute recompute;
  Lora lora;
  Sharding sharding = Sharding::kNone;
  /// Whether kZero2 was asked for as stage 3 whose parameters stay gathered until backward, which is FSDP's.
  bool keeps_gathered = false;
  /// Data- and context-parallel ranks that hold one copy of what is sharded; further groups of as many hold
  /// replicas of it (FSDP's hybrid sharding). 0 = all ranks.
  std::int64_t shard_group = 0;
  Offload offload;
  /// First layers of the model whose activations wait for backward in the host's memory; 0 = none
  /// (Megatron-LM's --cpu-offloading-num-layers).
  std::int64_t offloaded_layers = 0;
  ShardUnits units;
  Precision precision = Precision::kBf16;
  /// Of precision fp8.
  Fp8 fp8;
  /// Bytes of a gradient element: 4 (fp32) or 2.
  std::int64_t gradient_bytes = 4;
  /// Layers of each virtual stage in pipeline order (p*v entries); empty = as even as possible.
  std::vector<std::int64_t> pipeline_layout;
  /// The vocabulary is padded to a multiple of this times tensor_parallel.
  std::int64_t vocab_padding = 128;
  /// Whether gradient reduction runs under the last micro-batch's backward.
  bool overlap_gradient_reduction = true;
  /// Whether ZeRO-1 gathers the updated parameters under the next step's forward, bucket by bucket, instead
  /// of at once after the optimizer (Megatron-LM's --overlap-param-gather).
  bool overlap_parameter_gather = false;
  /// Whether a pipeline rank computes while its own sends are on the way.
  bool overlap_point_to_point = false;
  /// Whether tensor-parallel communication in backward runs beside the weight-gradient multiply.
  bool overlap_tensor_communication = true;
  /// Whether pipeline transfers without sequence parallelism are split over the tensor-parallel ranks and
  /// gathered at the receiver (Megatron-LM's scatter/gather optimisation).
  bool scatter_gather_transfers = true;
  /// Parameters per gradient bucket; a bucket is reduced as soon as backward has filled it.
  std::int64_t bucket_parameters = 40'000'000;
  Launch launch = Launch::kEager;
  Fusion fusion = Fusion::kStandard;
  Framework framework = Framework::kMegatron;
  Loss loss = Loss::kStandard;
  FusedLinears fused_linears;
  /// Whether full recomputation of a layer ends as soon as backward has all it needs, so that the layer's
  /// last multiply does not run (PyTorch's torch.utils.checkpoint without reentry since 2.1).
  bool checkpoint_early_stop = false;
  /// How often the training loop works out the cross-entropy of a micro-batch again, for its metrics.
  std::int64_t loss_metrics = 0;
  Optimizer optimizer = Optimizer::kAdam;
  /// Whether Transformer Engine computes the layers: it keeps one stand-in of each shape of weight for the
  /// gradients that are accumulated elsewhere.
  bool transformer_engine = false;
  /// Whether weight gradients are added to the accumulated ones inside their multiply (Megatron-LM's
  /// --gradient-accumulation-fusion), instead of in a pass of its own.
  bool gradient_accumulation_fusion = true;
  /// Whether fused norms keep a row in registers and read it once (apex FastLayerNorm, Transformer Engine),
  /// as Megatron-LM does since 2022 unless --no-persist-layer-norm is given, or are those of apex before.
  bool persistent_norm = true;
  /// What is assumed to be faster than it is modelled.
  OpSpeedups op_speedups;
  /// Which ranks sit next to each other: axes from the innermost to the outermost.
  RankOrder order = kTensorDataPipeline;
  /// Nodes of the cluster that the job runs on, in the order of its ranks; empty = the first ones.
  std::vector<std::int64_t> nodes;
  /// Device memory kept for the CUDA context, NCCL and cuBLAS workspaces.
  Bytes memory_reserve = 0;
  /// Whether PyTorch's allocator grows its segments instead of caching them by size.
  bool expandable_segments = false;
  /// Measured times of each stage, or one entry for all of them; empty = times are modelled.
  std::vector<StageProfile> profile;

  /// Measured times of a stage; only of a plan that has any.
  const StageProfile& profile_of(std::int64_t stage) const {
    return profile.size() == 1 ? profile.front() : profile.at(static_cast<std::size_t>(stage));
  }
  /// Whether weight gradients have slots of their own.
  bool splits_backward() const {
    return schedule == ScheduleKind::kZeroBubbleH1 || schedule == ScheduleKind::kZeroBubbleH2;
  }
  /// Micro-batches of one step on one pipeline, m.
  std::int64_t micro_batches() const { return global_batch_size / (micro_batch_size * data_parallel); }
  /// Ranks that hold the same parameters and add up their gradients: data-parallel ones, and the
  /// context-parallel ones within each.
  std::int64_t data_context_ranks() const { return data_parallel * context_parallel; }
  /// GPUs of one model replica.
  std::int64_t replica_gpus() const { return tensor_parallel * context_parallel * pipeline_parallel; }
  /// Ranks over which state is sharded, 1 without sharding.
  std::int64_t shard_ranks() const {
    if (sharding == Sharding::kNone) return 1;
    return shard_group > 0 ? shard_group : data_context_ranks();
  }
  /// Tensor-parallel degree of experts.
  std::int64_t expert_tensor() const {
    return expert_tensor_parallel > 0 ? expert_tensor_parallel : tensor_parallel;
  }
  /// Ranks of a stage, all of which hold experts.
  std::int64_t expert_ranks() const { return tensor_parallel * context_parallel * data_parallel; }
  /// Those that hold the same experts: expert data parallelism.
  std::int64_t expert_data_parallel() const { return expert_ranks() / (expert_tensor() * expert_parallel); }
  /// Whether ranks of a stage hold different experts, or share them otherwise than the rest of a layer.
  bool spreads_experts() const { return expert_parallel > 1 || expert_tensor() != tensor_parallel; }
  /// Ranks over which the state of experts is sharded.
  std::int64_t expert_shard_ranks() const { return sharding == Sharding::kNone ? 1 : expert_data_parallel(); }
  /// Whether ranks that hold the same routed experts share their state, though others may not. False where
  /// the degrees of experts are not known.
  bool shards_experts() const {
    const bool known = expert_parallel > 0 && expert_tensor() > 0;
    return known && spreads_experts() && expert_shard_ranks() > 1;
  }
  /// Whether a rank holds a shard of each weight, instead of a stretch of a contiguous buffer.
  bool shards_each_weight() const {
    return framework == Framework::kFsdp || framework == Framework::kInternEvo;
  }
  /// Whether parameters are gathered, or gradients scattered, unit by unit while a step runs.
  bool shards_parameters() const {
    const bool staged = sharding == Sharding::kZero2 || sharding == Sharding::kZero3;
    return staged && (shard_ranks() > 1 || shards_experts());
  }
  /// Whether a step works on one layer's parameters and gradients after the other: gathered, scattered, or
  /// copied to and from the host.
  bool works_by_units() const {
    const bool staged = sharding == Sharding::kZero2 || sharding == Sharding::kZero3;
    return shards_parameters() || (staged && offload.active());
  }
  /// Whether ranks share the optimizer's state by whole weights, each of which one rank updates and
  /// broadcasts.
  bool deals_out_weights() const {
    return framework == Framework::kInternEvo && sharding == Sharding::kZero1;
  }
  /// Whether anything of a GPU is on its host.
  bool uses_host() const { return offload.active() || offloaded_layers > 0; }
  /// Whether there are several copies of sharded state.
  bool is_hybrid() const { return sharding != Sharding::kNone && shard_ranks() < data_context_ranks(); }
  /// Stages counted with chunks, p*v.
  std::int64_t virtual_stages() const { return pipeline_parallel * virtual_pipeline; }
  /// Bytes of an element of the gradients that the optimizer finds: FSDP casts what it has reduced to the
  /// fp32 of its shards.
  std::int64_t optimizer_gradient_bytes() const { return framework == Framework::kFsdp ? 4 : gradient_bytes; }
  /// Whether linear layers multiply in 8 bits.
  bool uses_fp8() const { return precision == Precision::kFp8; }
  /// Whether parameters and activations are in fp32, so that there are no master parameters beside them.
  bool stores_fp32() const { return precision == Precision::kFp32 || precision == Precision::kTf32; }
  /// Bytes of an activation or parameter element in compute precision; of what is not in 8 bits with fp8.
  std::int64_t element_bytes() const { return stores_fp32() ? 4 : 2; }
};

/// Everything that is wrong with a plan for this model and cluster, with all legal alternatives; empty =
/// legal. Field paths are those of the configuration file ("plan.tensor_parallel", "gpus", …). `unread` are
/// field paths whose values are not known (they were wrong or missing): rules that need one of them, or of
/// what is below it, are left out. REQUIRES: all other counts are >= 1, where plan, model and cluster do not
/// allow 0.
Problems check(const ParallelPlan& plan, const model::ModelSpec& model, const hardware::ClusterSpec& cluster,
               const std::vector<std::string>& unread = {});

/// Everything that keeps `gpus` GPUs of a cluster from working together, whatever runs on them; the same
/// paths.
Problems check_cluster(const hardware::ClusterSpec& cluster, std::int64_t gpus);

/// What is legal but probably not meant (key/value heads replicated, tensor parallelism across nodes, …).
Problems warnings(const ParallelPlan& plan, const model::ModelSpec& model,
                  const hardware::ClusterSpec& cluster);

/// Layers of each virtual stage in pipeline order: the given layout, or an even split whose remainder goes to
/// the middle stages first, because the first and last also hold embedding and head.
std::vector<std::int64_t> stage_layers(const ParallelPlan& plan, const model::ModelSpec& model);

/// Layers of a pipeline stage, all its chunks together.
std::int64_t layers_of_stage(const ParallelPlan& plan, const model::ModelSpec& model, std::int64_t stage);

/// Position of a rank in the grid.
struct Coordinates {
  std::int64_t tensor = 0;
  std::int64_t data = 0;
  std::int64_t stage = 0;
  std::int64_t context = 0;
};

/// The same plan with the whole model and the whole batch on one rank.
ParallelPlan undivided(ParallelPlan plan);

/// Position of a rank among those that share a layer's experts.
struct ExpertCoordinates {
  /// Among the ranks that share an expert.
  std::int64_t tensor = 0;
  /// Which of the experts it holds.
  std::int64_t expert = 0;
  /// Among the ranks that hold the same.
  std::int64_t data = 0;
};

/// The ranks of a stage in the order of their tensor-parallel and then their data-parallel coordinate, dealt
/// out anew: first to an expert's tensor parallelism, then to expert parallelism, then to expert data
/// parallelism, as Megatron-LM's parallel_state does with its expert groups.
ExpertCoordinates expert_coordinates_of(const ParallelPlan& plan, const Coordinates& at);
/// And back.
Coordinates coordinates_of(const ParallelPlan& plan, const ExpertCoordinates& at, std::int64_t stage);

/// Rank of a grid position, and back.
std::int64_t rank_of(const ParallelPlan& plan, const Coordinates& at);
Coordinates coordinates_of(const ParallelPlan& plan, std::int64_t rank);

/// GPU of the cluster that a rank runs on.
std::int64_t gpu_of(const ParallelPlan& plan, std::int64_t rank, std::int64_t gpus_per_node);
/// GPUs from the cluster's first to the last that the job uses.
std::int64_t gpus_in_reach(const ParallelPlan& plan, std::int64_t gpus_per_node);
/// Tensor-parallel ranks, context-parallel ones, and data- and context-parallel ones together, that share a
/// node with rank 0 and its group.
std::int64_t tensor_ranks_in_node(const ParallelPlan& plan, std::int64_t gpus_per_node);
std::int64_t context_ranks_in_node(const ParallelPlan& plan, std::int64_t gpus_per_node);
std::int64_t data_ranks_in_node(const ParallelPlan& plan, std::int64_t gpus_per_node);

/// Names as the configuration file spells them.
std::string to_string(const RankOrder& order);
std::string to_string(ScheduleKind kind);
std::string to_string(ContextCommunication communication);
std::string to_string(RecomputeGranularity granularity);
std::string to_string(RecomputeMethod method);
/// Modules as Megatron-LM's --recompute-modules names them.
std::vector<std::string> module_names(const RecomputeModules& modules);
std::string to_string(Precision precision);
std::string to_string(Fp8Recipe recipe);
std::string to_string(Sharding sharding);
std::string to_string(Launch launch);
std::string to_string(Fusion fusion);
std::string to_string(Framework framework);
/// What is taken where a configuration leaves it open: FSDP where parameters are gathered, else Megatron-LM;
/// and Transformer Engine with Megatron-LM and attention kernels of its time.
Framework usual_framework(Sharding sharding);
bool usual_transformer_engine(Framework framework, model::Attention attention);
/// Likewise: all of Megatron-LM and Megatron-DeepSpeed; InternEvo's Wqkv, beside w1 and w2. With FSDP those
/// of models that are GPT's kin (MPT's Wqkv), but none of a gated model: torchtitan, Hugging Face and
/// foundation-model-stack have a module for each of Llama's.
FusedLinears usual_fused_linears(Framework framework, bool gated);
/// Likewise: FSDP's wrapper of checkpoints. Megatron-LM and DeepSpeed have their own, which run all again.
bool usual_early_stop(Framework framework);
std::vector<std::string> fused_names(const FusedLinears& linears);
std::string to_string(OffloadTarget target);
std::string to_string(BackwardPrefetch prefetch);
std::string to_string(Loss loss);
std::string to_string(Optimizer optimizer);

}  // namespace trainsim::plan
