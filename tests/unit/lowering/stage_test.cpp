// SPDX-License-Identifier: Apache-2.0
// What a stage's program does between and around the layers: pipeline messages, gradient exchange, memory and
// recomputation. The model has 8 layers unless stated, h = 512, s = 256, V = 8192, one sequence per
// micro-batch.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using plan::ParallelPlan;
using plan::RecomputeGranularity;
using plan::RecomputeMethod;
using program::Cause;
using program::CollectiveOp;
using program::GroupKind;
using program::Instruction;
using program::MemoryCategory;
using program::Opcode;
using program::PeerKind;
using program::Program;
using program::SlotInfo;
using program::Stream;
using tests::gpt;
using tests::programs_of;
using tests::split_plan;

constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kVocab = 8192;
constexpr std::int64_t kSequence = 256;
constexpr std::int64_t kSbh = kSequence * kHidden;
/// 12 h^2 + 13 h.
constexpr std::int64_t kLayerParameters = 12 * kHidden * kHidden + 13 * kHidden;
/// (V + s) h.
constexpr std::int64_t kEmbeddingParameters = (kVocab + kSequence) * kHidden;

// --- Pipeline messages ---

/// Where a message comes from or goes to.
struct MessageEnd {
  std::int64_t stage = 0;
  SlotInfo slot;
  double bytes = 0;
};
/// By receiving stage and message number.
using Messages = std::multimap<std::pair<std::int64_t, std::uint32_t>, MessageEnd>;

Messages sent_messages(const std::vector<Program>& programs) {
  Messages messages;
  const auto p = static_cast<std::int64_t>(programs.size());
  for (std::int64_t stage = 0; stage < p; ++stage) {
    const Program& program = programs[static_cast<std::size_t>(stage)];
    SlotInfo slot;
    for (const Instruction& instruction : program.stream(Stream::kCompute)) {
      if (instruction.op == Opcode::kSlotBegin) slot = program.slots[instruction.id];
      if (instruction.op != Opcode::kSend) continue;
      const std::int64_t step = instruction.peer == PeerKind::kNextStage ? 1 : p - 1;
      messages.insert({{(stage + step) % p, instruction.id}, {stage, slot, instruction.amount}});
    }
  }
  return messages;
}

Messages received_messages(const std::vector<Program>& programs) {
  Messages messages;
  for (std::size_t stage = 0; stage < programs.size(); ++stage) {
    std::optional<std::uint32_t> pending;
    for (const Instruction& instruction : programs[stage].stream(Stream::kCompute)) {
      if (instruction.op == Opcode::kReceive) pending = instruction.id;
      if (instruction.op != Opcode::kSlotBegin || !pending) continue;
      const auto number = static_cast<std::int64_t>(stage);
      messages.insert({{number, *pending}, {number, programs[stage].slots[instruction.id], 0}});
      pending.reset();
    }
  }
  return messages;
}

std::int64_t virtual_stage(const MessageEnd& end, std::int64_t stages) {
  return end.slot.chunk * stages + end.stage;
}

/// Every micro-batch crosses every boundary between virtual stages once forward and once back, and the slot
/// that receives it is the next one on its way.
void expect_one_message_per_boundary(const ParallelPlan& plan) {
  const std::int64_t p = plan.pipeline_parallel;
  const std::vector<Program> programs = programs_of(gpt({8}), plan);
  const Messages sent = sent_messages(programs);
  const Messages received = received_messages(programs);
  const std::int64_t boundaries = p * plan.virtual_pipeline - 1;
  EXPECT_EQ(static_cast<std::int64_t>(sent.size()), 2 * plan.micro_batches() * boundaries);
  EXPECT_EQ(received.size(), sent.size());
  std::set<std::pair<std::int64_t, std::int32_t>> forward;
  for (const auto& [key, from] : sent) {
    ASSERT_EQ(sent.count(key), 1U);
    ASSERT_EQ(received.count(key), 1U);
    ASSERT_LT(key.second, programs[static_cast<std::size_t>(key.first)].messages);
    const MessageEnd& to = received.find(key)->second;
    EXPECT_EQ(to.slot.kind, from.slot.kind);
    EXPECT_EQ(to.slot.micro_batch, from.slot.micro_batch);
    const std::int64_t step = from.slot.kind == 'F' ? 1 : -1;
    EXPECT_EQ(virtual_stage(to, p), virtual_stage(from, p) + step);
    if (step == 1) forward.insert({virtual_stage(from, p), from.slot.micro_batch});
  }
  EXPECT_EQ(static_cast<std::int64_t>(forward.size()), plan.micro_batches() * boundaries);
}

TEST(PipelineMessages, CrossEachBoundaryOnceEachWay) {
  expect_one_message_per_boundary(split_plan({1, 2, 1, 1}, 1));
  expect_one_message_per_boundary(split_plan({1, 4, 1, 1}, 8));
  expect_one_message_per_boundary(split_plan({1, 4, 2, 1}, 8));
  expect_one_message_per_boundary(split_plan({2, 2, 4, 1}, 6));
  ParallelPlan gpipe = split_plan({1, 4, 1, 1}, 6);
  gpipe.schedule = plan::ScheduleKind::kGpipe;
  expect_one_message_per_boundary(gpipe);
  ParallelPlan uneven = split_plan({1, 4, 1, 1}, 6);
  uneven.pipeline_layout = {0, 5, 3, 0};
  expect_one_message_per_boundary(uneven);
}

TEST(PipelineMessages, AreNoneWithOneStage) {
  const std::vector<Program> programs = programs_of(gpt({8}), split_plan({2, 1, 1, 1}, 4));
  EXPECT_TRUE(sent_messages(programs).empty());
  EXPECT_TRUE(received_messages(programs).empty());
}

/// All-gathers that put a scattered message together again.
int gathers_after_messages(const std::vector<Program>& programs, double bytes) {
  int gathers = 0;
  for (const Program& program : programs) {
    const std::vector<Instruction>& code = program.stream(Stream::kCompute);
    for (std::size_t i = 0; i + 1 < code.size(); ++i) {
      if (code[i].op != Opcode::kReceive || code[i + 1].op != Opcode::kCollective) continue;
      EXPECT_EQ(code[i + 1].collective, CollectiveOp::kAllGather);
      EXPECT_EQ(code[i + 1].group, GroupKind::kTensor);
      EXPECT_EQ(code[i + 1].cause, Cause::kPipelineCommunication);
      EXPECT_EQ(code[i + 1].amount, bytes);
      ++gathers;
    }
  }
  return gathers;
}

void expect_message_bytes(const ParallelPlan& plan, double bytes, bool gathered) {
  const std::vector<Program> programs = programs_of(gpt({8}), plan);
  const Messages sent = sent_messages(programs);
  ASSERT_FALSE(sent.empty());
  for (const auto& [key, from] : sent) EXPECT_EQ(from.bytes, bytes);
  EXPECT_EQ(gathers_after_messages(programs, 2.0 * kSbh), gathered ? static_cast<int>(sent.size()) : 0);
}

TEST(PipelineMessages, CarryAShardWithSequenceParallelism) {
  ParallelPlan plan = split_plan({4, 2, 1, 1}, 4);
  plan.sequence_parallel = true;
  for (const bool scatter : {false, true}) {
    plan.scatter_gather_transfers = scatter;
    expect_message_bytes(plan, 2.0 * kSbh / 4, false);
  }
}

TEST(PipelineMessages, CarryAShardThatIsGatheredWithScatterGather) {
  const ParallelPlan plan = split_plan({4, 2, 1, 1}, 4);
  ASSERT_TRUE(plan.scatter_gather_transfers);
  expect_message_bytes(plan, 2.0 * kSbh / 4, true);
}

TEST(PipelineMessages, CarryTheWholeTensorOtherwise) {
  ParallelPlan plan = split_plan({4, 2, 1, 1}, 4);
  plan.scatter_gather_transfers = false;
  expect_message_bytes(plan, 2.0 * kSbh, false);
  expect_message_bytes(split_plan({1, 2, 1, 1}, 4), 2.0 * kSbh, false);
  ParallelPlan fp32 = split_plan({1, 2, 1, 1}, 4);
  fp32.precision = plan::Precision::kFp32;
  expect_message_bytes(fp32, 4.0 * kSbh, false);
}

TEST(PipelineMessages, LeaveTheComputeStreamWhenTheyOverlap) {
  ParallelPlan plan = split_plan({1, 4, 2, 1}, 8);
  plan.overlap_point_to_point = true;
  for (const Program& program : programs_of(gpt({8}), plan)) {
    for (const Instruction& instruction : program.stream(Stream::kCompute)) {
      EXPECT_NE(instruction.op, Opcode::kSend);
    }
    const std::vector<Instruction>& sends = program.stream(Stream::kSend);
    ASSERT_FALSE(sends.empty());
    for (std::size_t i = 0; i < sends.size(); ++i) {
      EXPECT_EQ(sends[i].op, i % 2 == 0 ? Opcode::kWait : Opcode::kSend);
    }
  }
}

// --- Gradient exchange ---

/// Collectives of a stream over a group, in order.
std::vector<Instruction> collectives(const Program& program, Stream stream, GroupKind group) {
  std::vector<Instruction> found;
  for (const Instruction& instruction : program.stream(stream)) {
    if (instruction.op == Opcode::kCollective && instruction.group == group) found.push_back(instruction);
  }
  return found;
}

double total_bytes(const std::vector<Instruction>& instructions) {
  double total = 0;
  for (const Instruction& instruction : instructions) total += instruction.amount;
  return total;
}

/// Parameters of each stage of a pipeline of two: the first has the embedding, the last the final norm and a
/// copy of the word embedding.
std::array<std::int64_t, 2> parameters_of_two_stages() {
  return {4 * kLayerParameters + kEmbeddingParameters, 4 * kLayerParameters + 2 * kHidden + kVocab * kHidden};
}

TEST(GradientBuckets, AddUpToTheParametersOfTheStage) {
  for (const std::int64_t bucket : {std::int64_t{1}, std::int64_t{4'000'000}, std::int64_t{1'000'000'000}}) {
    for (const std::int64_t chunks : {1, 2}) {
      ParallelPlan plan = split_plan({1, 2, chunks, 4}, 4);
      plan.bucket_parameters = bucket;
      const std::vector<Program> programs = programs_of(gpt({8}), plan);
      for (std::size_t stage = 0; stage < 2; ++stage) {
        const auto buckets = collectives(programs[stage], Stream::kData, GroupKind::kData);
        EXPECT_EQ(total_bytes(buckets), 4.0 * static_cast<double>(parameters_of_two_stages()[stage]));
        EXPECT_TRUE(collectives(programs[stage], Stream::kCompute, GroupKind::kData).empty());
        for (const Instruction& each : buckets) EXPECT_EQ(each.collective, CollectiveOp::kAllReduce);
      }
    }
  }
}

TEST(GradientBuckets, AreSentAsSoonAsTheyAreFull) {
  // Backward order on a single stage: head (2 h), 8 layers of 3,152,384, embedding of 4,325,376. Buckets of
  // at least 4,000,000: the head with two layers, three times two layers, and the embedding.
  ParallelPlan plan = split_plan({1, 1, 1, 4});
  plan.bucket_parameters = 4'000'000;
  const auto buckets = collectives(programs_of(gpt({8}), plan).front(), Stream::kData, GroupKind::kData);
  ASSERT_EQ(buckets.size(), 5U);
  EXPECT_EQ(buckets[0].amount, 4.0 * (2 * kHidden + 2 * kLayerParameters));
  for (const std::size_t i : {1U, 2U, 3U}) EXPECT_EQ(buckets[i].amount, 4.0 * 2 * kLayerParameters);
  EXPECT_EQ(buckets[4].amount, 4.0 * kEmbeddingParameters);
}

TEST(GradientBuckets, HoldOnlyTheEndsOnStagesWithoutLayers) {
  ParallelPlan plan = split_plan({1, 4, 1, 4}, 4);
  plan.pipeline_layout = {0, 4, 4, 0};
  const std::vector<Program> programs = programs_of(gpt({8}), plan);
  const auto bytes = [&](std::size_t stage) {
    return total_bytes(collectives(programs[stage], Stream::kData, GroupKind::kData));
  };
  EXPECT_EQ(bytes(0), 4.0 * kEmbeddingParameters);
  EXPECT_EQ(bytes(1), 4.0 * 4 * kLayerParameters);
  EXPECT_EQ(bytes(3), 4.0 * (2 * kHidden + kVocab * kHidden));
}

TEST(GradientBuckets, HaveTheGradientsPrecision) {
  ParallelPlan plan = split_plan({1, 1, 1, 4});
  plan.gradient_bytes = 2;
  const auto buckets = collectives(programs_of(gpt({8}), plan).front(), Stream::kData, GroupKind::kData);
  EXPECT_EQ(total_bytes(buckets), 2.0 * (8 * kLayerParameters + kEmbeddingParameters + 2 * kHidden));
}

TEST(GradientBuckets, AreNoneWithoutDataParallelism) {
  const Program program = programs_of(gpt({8}), split_plan({2, 1, 1, 1})).front();
  EXPECT_TRUE(program.stream(Stream::kData).empty());
  EXPECT_TRUE(collectives(program, Stream::kCompute, GroupKind::kData).empty());
}

/// Slots in which the events are recorded that reductions wait for.
std::vector<SlotInfo> slots_that_reduce(const Program& program) {
  std::set<std::uint32_t> awaited;
  for (const Instruction& instruction : program.stream(Stream::kData)) {
    if (instruction.op == Opcode::kWait) awaited.insert(instruction.id);
  }
  std::vector<SlotInfo> slots;
  SlotInfo slot{'-', -1, -1};
  for (const Instruction& instruction : program.stream(Stream::kCompute)) {
    if (instruction.op == Opcode::kSlotBegin) slot = program.slots[instruction.id];
    if (instruction.op == Opcode::kSlotEnd) slot = {'-', -1, -1};
    if (instruction.op == Opcode::kRecord && awaited.count(instruction.id) == 1) slots.push_back(slot);
  }
  EXPECT_EQ(slots.size(), awaited.size());
  return slots;
}

TEST(GradientBuckets, AreSentInTheLastBackwardOnly) {
  for (const std::int64_t chunks : {1, 2}) {
    ParallelPlan plan = split_plan({1, 2, chunks, 4}, 6);
    plan.bucket_parameters = 1;
    for (const Program& program : programs_of(gpt({8}), plan)) {
      const std::vector<SlotInfo> slots = slots_that_reduce(program);
      // One bucket for each of four layers, and one for the embedding or the head.
      EXPECT_EQ(slots.size(), 5U);
      for (const SlotInfo& slot : slots) {
        EXPECT_EQ(slot.kind, 'B');
        EXPECT_EQ(slot.micro_batch, 5);
      }
    }
  }
}

TEST(GradientBuckets, AreAllAwaitedBeforeTheOptimizer) {
  ParallelPlan plan = split_plan({1, 1, 1, 4}, 2);
  plan.bucket_parameters = 1;
  const Program program = programs_of(gpt({8}), plan).front();
  // The data stream is in order, so that its last event comes after all reductions.
  const Instruction last = program.stream(Stream::kData).back();
  ASSERT_EQ(last.op, Opcode::kRecord);
  const std::vector<Instruction>& code = program.stream(Stream::kCompute);
  const auto waits = [&](const Instruction& each) { return each.op == Opcode::kWait && each.id == last.id; };
  const auto optimizes = [](const Instruction& each) {
    return each.op == Opcode::kCompute && each.cause == Cause::kOptimizer;
  };
  const auto wait = std::find_if(code.begin(), code.end(), waits);
  const auto optimizer = std::find_if(code.begin(), code.end(), optimizes);
  ASSERT_NE(wait, code.end());
  ASSERT_NE(optimizer, code.end());
  EXPECT_LT(wait, optimizer);
  EXPECT_EQ(std::count_if(code.begin(), code.end(), optimizes), 1);
}

/// Bytes that the optimizer's kernel of this name moves.
double optimizer_bytes(const ParallelPlan& plan, const std::string& name) {
  const Program program = programs_of(gpt({8}), plan).front();
  for (const program::Segment& segment : program.segments) {
    for (const program::Kernel& kernel : segment.kernels) {
      if (kernel.kind == program::KernelKind::kOptimizer && kernel.name == name) return kernel.bytes;
    }
  }
  return 0;
}

/// Adam reads the gradient (4), reads and writes master weight and two moments (24), and writes the parameter
/// (2). With a distributed optimizer each rank adds up the norm of its shard; in fp32 the parameter is its
/// own master.
TEST(Optimizer, UpdatesItsShardOnly) {
  const double parameters = 8 * kLayerParameters + kEmbeddingParameters + 2 * kHidden;
  ParallelPlan plan = split_plan({1, 1, 1, 4});
  EXPECT_EQ(optimizer_bytes(plan, "adam"), 30 * parameters);
  plan.sharding = plan::Sharding::kZero1;
  EXPECT_EQ(optimizer_bytes(plan, "adam"), 30 * parameters / 4);
  EXPECT_EQ(optimizer_bytes(plan, "gradient norm"), 4 * parameters / 4);
  plan.gradient_bytes = 2;
  EXPECT_EQ(optimizer_bytes(plan, "gradient norm"), 2 * parameters / 4);
  plan.precision = plan::Precision::kFp32;
  EXPECT_EQ(optimizer_bytes(plan, "adam"), 28 * parameters / 4);
}

/// Position of the last instruction of a kind on the compute stream, or -1.
std::ptrdiff_t last_position(const Program& program, Opcode op) {
  const std::vector<Instruction>& code = program.stream(Stream::kCompute);
  for (auto i = static_cast<std::ptrdiff_t>(code.size()) - 1; i >= 0; --i) {
    if (code[static_cast<std::size_t>(i)].op == op) return i;
  }
  return -1;
}

std::ptrdiff_t position_of_group(const Program& program, GroupKind group) {
  const std::vector<Instruction>& code = program.stream(Stream::kCompute);
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i].op == Opcode::kCollective && code[i].group == group) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

TEST(GradientReduction, IsOneAfterAllSlotsWithoutOverlap) {
  ParallelPlan plan = split_plan({1, 2, 1, 4}, 6);
  plan.overlap_gradient_reduction = false;
  plan.bucket_parameters = 1;
  const std::vector<Program> programs = programs_of(gpt({8}), plan);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    EXPECT_TRUE(programs[stage].stream(Stream::kData).empty());
    const auto reductions = collectives(programs[stage], Stream::kCompute, GroupKind::kData);
    ASSERT_EQ(reductions.size(), 1U);
    EXPECT_EQ(reductions[0].collective, CollectiveOp::kAllReduce);
    EXPECT_EQ(reductions[0].amount, 4.0 * static_cast<double>(parameters_of_two_stages()[stage]));
    EXPECT_GT(position_of_group(programs[stage], GroupKind::kData),
              last_position(programs[stage], Opcode::kSlotEnd));
  }
}

TEST(GradientReduction, IsAScatterAndParametersAreGatheredWithZero1) {
  for (const bool overlap : {false, true}) {
    ParallelPlan plan = split_plan({1, 1, 1, 4}, 2);
    plan.sharding = plan::Sharding::kZero1;
    plan.overlap_gradient_reduction = overlap;
    const Program program = programs_of(gpt({8}), plan).front();
    const auto parameters = static_cast<double>(8 * kLayerParameters + kEmbeddingParameters + 2 * kHidden);
    std::vector<Instruction> reductions = collectives(program, Stream::kCompute, GroupKind::kData);
    ASSERT_FALSE(reductions.empty());
    const Instruction gather = reductions.back();
    EXPECT_EQ(gather.collective, CollectiveOp::kAllGather);
    EXPECT_EQ(gather.amount, 2 * parameters);
    reductions.pop_back();
    if (overlap) reductions = collectives(program, Stream::kData, GroupKind::kData);
    for (const Instruction& each : reductions) EXPECT_EQ(each.collective, CollectiveOp::kReduceScatter);
    EXPECT_EQ(total_bytes(reductions), 4 * parameters);
  }
}

TEST(TiedEmbedding, IsReducedBetweenFirstAndLastStage) {
  // V / t rows of h gradients of 4 bytes.
  const std::vector<Program> programs = programs_of(gpt({8}), split_plan({2, 4, 1, 1}, 4));
  for (const std::size_t stage : {0U, 3U}) {
    const auto reductions = collectives(programs[stage], Stream::kCompute, GroupKind::kEmbedding);
    ASSERT_EQ(reductions.size(), 1U);
    EXPECT_EQ(reductions[0].collective, CollectiveOp::kAllReduce);
    EXPECT_EQ(reductions[0].amount, 4.0 * kVocab / 2 * kHidden);
    EXPECT_EQ(reductions[0].cause, Cause::kEmbeddingCommunication);
  }
  for (const std::size_t stage : {1U, 2U})
    EXPECT_EQ(position_of_group(programs[stage], GroupKind::kEmbedding), -1);
}

TEST(TiedEmbedding, NeedsNoReductionOnOneStageOrWhenNotTied) {
  model::ModelSpec model = gpt({8});
  EXPECT_EQ(position_of_group(programs_of(model, split_plan({2, 1, 1, 1})).front(), GroupKind::kEmbedding),
            -1);
  model.tie_word_embeddings = false;
  for (const Program& program : programs_of(model, split_plan({2, 4, 1, 1}, 4))) {
    EXPECT_EQ(position_of_group(program, GroupKind::kEmbedding), -1);
  }
}

// --- Memory ---

/// Largest sum of a category's allocations.
Bytes peak_of(const Program& program, MemoryCategory category) {
  Bytes now = 0;
  Bytes peak = 0;
  for (const Instruction& instruction : program.stream(Stream::kCompute)) {
    if (instruction.op != Opcode::kAllocate && instruction.op != Opcode::kFree) continue;
    if (instruction.memory != category) continue;
    const auto bytes = static_cast<Bytes>(instruction.amount);
    now += instruction.op == Opcode::kAllocate ? bytes : -bytes;
    EXPECT_GE(now, 0) << to_string(category);
    peak = std::max(peak, now);
  }
  return peak;
}

bool is_state(std::size_t category) {
  const auto kind = static_cast<MemoryCategory>(category);
  return kind == MemoryCategory::kParameters || kind == MemoryCategory::kGradients ||
         kind == MemoryCategory::kOptimizerState;
}

void expect_only_state_at_the_end(const ParallelPlan& plan, const model::ModelSpec& model) {
  const program::Timeline timeline = tests::run_free(model, plan);
  for (const program::RankTimeline& rank : timeline.ranks) {
    for (std::size_t category = 0; category < rank.memory_at_end.size(); ++category) {
      if (is_state(category)) {
        EXPECT_GT(rank.memory_at_end[category], 0);
      } else {
        EXPECT_EQ(rank.memory_at_end[category], 0) << to_string(static_cast<MemoryCategory>(category));
      }
    }
  }
}

std::vector<plan::Recompute> recomputations() {
  return {{},
          {RecomputeGranularity::kSelective},
          {RecomputeGranularity::kFull, RecomputeMethod::kUniform, 1},
          {RecomputeGranularity::kFull, RecomputeMethod::kUniform, 3},
          {RecomputeGranularity::kFull, RecomputeMethod::kBlock, 1},
          {RecomputeGranularity::kFull, RecomputeMethod::kBlock, 2}};
}

TEST(StageMemory, IsFreedExceptForStateByTheEndOfTheStep) {
  for (const tests::Split& split :
       {tests::Split{1, 1, 1, 1}, tests::Split{2, 2, 1, 2}, tests::Split{2, 2, 2, 1}}) {
    for (const plan::Recompute& recompute : recomputations()) {
      for (const auto attention : {model::Attention::kStandard, model::Attention::kFlash}) {
        ParallelPlan plan = split_plan(split, 4);
        plan.recompute = recompute;
        plan.sequence_parallel = split.tensor > 1;
        model::ModelSpec model = gpt({16});
        model.attention = attention;
        expect_only_state_at_the_end(plan, model);
        model.dropout = 0;
        expect_only_state_at_the_end(plan, model);
      }
    }
  }
}

// --- Recomputation; five layers on one stage without tensor parallelism, one micro-batch ---

/// s b h (34 + 5 a s / h), the layer's input 2 s b h, and what embedding (mask) and head (4 s b h) keep.
constexpr Bytes kStored = kSbh * 54;
constexpr Bytes kInput = 2 * kSbh;
constexpr Bytes kOutside = kSbh + 4 * kSbh;
/// 24 b s h^2 (1 + s / 6h) = 1,610,612,736 * 13 / 12.
constexpr Flops kLayerForward = 1'744'830'464.0;

Program recomputing_program(RecomputeMethod method, std::int64_t layers) {
  ParallelPlan plan = split_plan({});
  plan.recompute = {RecomputeGranularity::kFull, method, layers};
  return programs_of(gpt({5}), plan).front();
}

TEST(Recomputation, KeepsEveryInputWithOneLayerPerCheckpoint) {
  for (const RecomputeMethod method : {RecomputeMethod::kUniform, RecomputeMethod::kBlock}) {
    const Program program = recomputing_program(method, method == RecomputeMethod::kBlock ? 5 : 1);
    EXPECT_EQ(peak_of(program, MemoryCategory::kActivations), 5 * kInput + kOutside);
    EXPECT_EQ(peak_of(program, MemoryCategory::kRecomputation), kStored);
    EXPECT_DOUBLE_EQ(program.recomputed_flops, 5 * kLayerForward);
  }
}

TEST(Recomputation, BringsBackAGroupOfLayersPerCheckpoint) {
  // Two layers per checkpoint: inputs of layers 0, 2 and 4; every layer runs again, two are there at a time.
  const Program two = recomputing_program(RecomputeMethod::kUniform, 2);
  EXPECT_EQ(peak_of(two, MemoryCategory::kActivations), 3 * kInput + kOutside);
  EXPECT_EQ(peak_of(two, MemoryCategory::kRecomputation), 2 * kStored);
  EXPECT_DOUBLE_EQ(two.recomputed_flops, 5 * kLayerForward);
  // All layers behind one checkpoint.
  const Program five = recomputing_program(RecomputeMethod::kUniform, 5);
  EXPECT_EQ(peak_of(five, MemoryCategory::kActivations), kInput + kOutside);
  EXPECT_EQ(peak_of(five, MemoryCategory::kRecomputation), 5 * kStored);
  EXPECT_DOUBLE_EQ(five.recomputed_flops, 5 * kLayerForward);
}

TEST(Recomputation, CoversTheFirstLayersOnlyWithBlocks) {
  // Two of five layers keep their inputs only and run again one by one; three keep everything.
  const Program program = recomputing_program(RecomputeMethod::kBlock, 2);
  EXPECT_EQ(peak_of(program, MemoryCategory::kActivations), 2 * kInput + 3 * kStored + kOutside);
  EXPECT_EQ(peak_of(program, MemoryCategory::kRecomputation), kStored);
  EXPECT_DOUBLE_EQ(program.recomputed_flops, 2 * kLayerForward);
}

TEST(Recomputation, RunsForEveryMicroBatchAndChunk) {
  // 16 layers on 2 stages of 2 chunks, 4 micro-batches: 8 layers per stage, all of them again each time.
  ParallelPlan plan = split_plan({1, 2, 2, 1}, 4);
  plan.recompute = {RecomputeGranularity::kFull, RecomputeMethod::kUniform, 2};
  for (const Program& program : programs_of(gpt({16}), plan)) {
    EXPECT_DOUBLE_EQ(program.recomputed_flops, 4 * 8 * kLayerForward);
    EXPECT_EQ(peak_of(program, MemoryCategory::kRecomputation), 2 * kStored);
  }
}

/// First of two stages, t = 2, 4 layers, 3 micro-batches: per layer 2 all-reduces forward, 2 again, 2
/// backward; and one for the embedding.
TEST(Recomputation, RepeatsTheCommunicationOfForward) {
  ParallelPlan plan = split_plan({2, 2, 1, 1}, 3);
  plan.scatter_gather_transfers = false;
  for (const bool full : {false, true}) {
    if (full) plan.recompute.granularity = RecomputeGranularity::kFull;
    const Program program = programs_of(gpt({8}), plan).front();
    const std::size_t transfers = collectives(program, Stream::kCompute, GroupKind::kTensor).size() +
                                  collectives(program, Stream::kTensor, GroupKind::kTensor).size();
    EXPECT_EQ(transfers, full ? 3U * (4 * 6 + 1) : 3U * (4 * 4 + 1));
  }
}

TEST(Recomputation, OfAttentionCoresBringsBackOneAtATime) {
  ParallelPlan plan = split_plan({});
  plan.recompute.granularity = RecomputeGranularity::kSelective;
  const Program program = programs_of(gpt({5}), plan).front();
  // 34 s b h without the core's 5 a s^2 b = 20 s b h, and its two products 4 b s^2 h.
  EXPECT_EQ(peak_of(program, MemoryCategory::kActivations), 5 * 34 * kSbh + kOutside);
  EXPECT_EQ(peak_of(program, MemoryCategory::kRecomputation), 20 * kSbh);
  EXPECT_DOUBLE_EQ(program.recomputed_flops, 5 * 4.0 * kSequence * kSequence * kHidden);
}

}  // namespace
}  // namespace trainsim::lowering
