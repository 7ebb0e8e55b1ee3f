// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/program/segment.hpp"

namespace trainsim::program {

/// Streams of a rank. Instructions of one stream run in order; streams run side by side, as CUDA streams do.
/// kContext exchanges keys and values between ranks that share a sequence. kToHost and kFromHost are the two
/// directions of copies between GPU and host; what the host itself computes for the rank happens on the
/// latter.
enum class Stream : std::uint8_t { kCompute, kTensor, kSend, kData, kToHost, kFromHost, kContext };
inline constexpr int kStreams = 7;
/// Name for tables and traces: "compute", "tensor", "send", "data", "to_host", "from_host", "context".
const char* to_string(Stream stream);

/// Communicators of a rank.
enum class GroupKind : std::uint8_t {
  /// Ranks that share every layer (tensor parallel).
  kTensor,
  /// Ranks that hold the same parameters (data parallel, and context parallel within that).
  kData,
  /// First and last stage, which share a tied embedding.
  kEmbedding,
  /// Data-parallel ranks that hold one copy of sharded state, where there are several copies.
  kShard,
  /// Those that hold the same shard of different copies.
  kReplica,
  /// Ranks that share each sequence (context parallel).
  kContext,
  /// Ranks that share the experts of a layer among them (expert parallel).
  kExpert,
  /// Ranks that hold the same experts.
  kExpertData,
};
inline constexpr int kGroupKinds = 8;
/// Name for tables and JSON: "tensor", "data", "embedding", "shard", "replica", "context", "expert",
/// "expert_data".
const char* to_string(GroupKind kind);

/// Ranks that a rank exchanges point-to-point messages with, relative to its own stage.
enum class PeerKind : std::uint8_t { kNextStage, kPreviousStage };
inline constexpr int kPeerKinds = 2;

/// Collective operations.
enum class CollectiveOp : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
  /// Every member sends its tensor to the next one of a ring: a step of ring attention.
  kRingShift,
};
/// Those that NCCL has an operation for.
inline constexpr std::array<CollectiveOp, 5> kCollectiveOps = {
    CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kReduceScatter,
    CollectiveOp::kBroadcast, CollectiveOp::kAllToAll};
/// Name for tables and traces: "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all",
/// "ring_shift".
const char* to_string(CollectiveOp op);

/// Why the compute stream is occupied; the rows of the breakdown.
enum class Cause : std::uint8_t {
  kForward,
  kBackward,
  kRecompute,
  kOptimizer,
  /// Tensor-parallel communication that compute waits for.
  kTensorCommunication,
  /// Pipeline transfers that compute waits for.
  kPipelineCommunication,
  /// Gradient and parameter exchange that compute waits for.
  kDataCommunication,
  /// Exchange of tied embedding gradients.
  kEmbeddingCommunication,
  /// Tokens on their way to experts and back.
  kExpertCommunication,
  /// Nothing to do: waiting for another stage to produce.
  kBubble,
  /// Waiting for slower members of a collective, or for the slowest rank to end the step.
  kImbalance,
  /// The GPU has run dry and waits for the host to launch kernels.
  kLaunch,
  /// Copies to and from the host that compute waits for, and the optimizer there.
  kOffload,
  /// Exchange between ranks that share a sequence, which attention waits for.
  kContextCommunication,
};
inline constexpr int kCauses = 14;
/// Name for tables and JSON, such as "tensor_communication".
const char* to_string(Cause cause);

/// Categories of device memory.
enum class MemoryCategory : std::uint8_t {
  kParameters,
  /// As backward makes them.
  kGradients,
  /// fp32 sums of them over micro-batches, where those are tensors of their own.
  kMainGradients,
  /// Master parameters and moments.
  kOptimizerState,
  kActivations,
  /// What recomputation brings back.
  kRecomputation,
  /// Logits, their softmax and gradients in fp32.
  kLogits,
  /// Gathered parameters and activations, reduction buckets.
  kCommunicationBuffers,
  /// Tokens in the order of the experts that they visit, as they are sent and received; unless backward needs
  /// them.
  kDispatchBuffers,
  /// Gradients of activations, and what lives within an operation.
  kTemporary,
};
inline constexpr int kMemoryCategories = 10;
/// Bytes by MemoryCategory.
using MemoryByCategory = std::array<Bytes, kMemoryCategories>;
/// Name for tables and JSON, such as "optimizer_state".
const char* to_string(MemoryCategory category);

/// What an instruction does.
enum class Opcode : std::uint8_t {
  /// Occupies the stream for a segment's time. id = segment, amount = seconds. The host launches the
  /// segment's kernels
  /// one after the other, ahead of the GPU; a segment can't end before the host has launched the last of
  /// them.
  kCompute,
  /// The host waits until the stream has reached this point, and then works for `amount` seconds before it
  /// launches
  /// anything; takes no time of the stream itself.
  kSynchronize,
  /// Runs `collective` over the rank's group `group`. amount = bytes of the whole tensor.
  kCollective,
  /// Sends a message to `peer` and waits until it has left. id = message of the receiver, amount = bytes.
  kSend,
  /// Waits until message `id` has arrived.
  kReceive,
  /// Marks event `id` as happened. Every event is recorded exactly once in a step.
  kRecord,
  /// Waits until event `id` has happened; the time counts as `cause`. Only one stream waits for an event.
  kWait,
  /// Allocates or frees `amount` bytes of category `memory`. id = tensor name. Takes no time, and executors
  /// ignore it: memory follows from the order of the compute stream alone, in which the host allocates.
  kAllocate,
  kFree,
  /// Begin and end of schedule slot `id`; take no time.
  kSlotBegin,
  kSlotEnd,
};

/// One instruction; which of the small fields is meant follows from the opcode.
struct Instruction {
  Opcode op = Opcode::kCompute;
  Cause cause = Cause::kForward;
  union {
    GroupKind group;
    PeerKind peer;
    MemoryCategory memory;
  };
  CollectiveOp collective = CollectiveOp::kAllReduce;
  std::uint32_t id = 0;
  double amount = 0;
};

/// What a slot was, for reports: kind 'F', 'B' or 'W', its micro-batch and chunk.
struct SlotInfo {
  char kind = 'F';
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
};

/// What the instructions of a stream belong to, from `first` on until the next mark.
struct Place {
  /// Index into the stream.
  std::uint32_t first = 0;
  /// Index into Program::slots; -1 outside slots. A slot's transfers belong to it.
  std::int32_t slot = -1;
  /// Number of the layer in the model; -1 where it is no layer's.
  std::int32_t layer = -1;
};

/// Everything that the ranks of one stage do in one training step. Ranks of a stage share the program; which
/// ranks their groups and peers are is bound in `Job`.
struct Program {
  std::array<std::vector<Instruction>, kStreams> streams;
  std::vector<Segment> segments;
  std::vector<SlotInfo> slots;
  /// Of each stream, in order; only reports need them. What comes before the first mark belongs to nothing.
  std::array<std::vector<Place>, kStreams> places;
  /// Names of tensors that kAllocate and kFree refer to.
  std::vector<std::string> tensors;
  /// Those that live as long as training does but first appear in its first step.
  std::vector<std::uint32_t> late_tensors;
  /// Those that outlive the micro-batch in whose slot they appear, of which there is one each.
  std::vector<std::uint32_t> lasting_tensors;
  /// Those that PyTorch allocates on another stream than that of compute, which takes no memory from its
  /// cache.
  std::vector<std::uint32_t> side_tensors;
  /// Bytes of the weights as the framework first makes them, if it then copies them to a buffer of its own.
  /// They are gone before the first step, but leave PyTorch's cache cut to their sizes.
  std::vector<Bytes> initial_weights;
  /// Number of event ids in use, and of messages that this rank receives.
  std::uint32_t events = 0;
  std::uint32_t messages = 0;
  /// Operations executed in the step, recomputation included, and recomputation alone.
  Flops flops = 0;
  Flops recomputed_flops = 0;

  std::vector<Instruction>& stream(Stream s) { return streams[static_cast<std::size_t>(s)]; }
  const std::vector<Instruction>& stream(Stream s) const { return streams[static_cast<std::size_t>(s)]; }
  /// What an instruction belongs to.
  Place place_of(Stream s, std::uint32_t instruction) const;
};

}  // namespace trainsim::program
