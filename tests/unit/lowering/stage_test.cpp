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
using tests::collectives;
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
  for (const plan::Precision precision : {plan::Precision::kFp32, plan::Precision::kTf32}) {
    fp32.precision = precision;
    expect_message_bytes(fp32, 4.0 * kSbh, false);
  }
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

TEST(GradientBuckets, AreSentInTheLastWeightSlotIfThereAreSuch) {
  ParallelPlan plan = split_plan({1, 2, 1, 4}, 6);
  plan.bucket_parameters = 1;
  plan.schedule = plan::ScheduleKind::kZeroBubbleH1;
  const std::vector<Program> programs = programs_of(gpt({8}), plan);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const std::vector<SlotInfo> slots = slots_that_reduce(programs[stage]);
    EXPECT_EQ(slots.size(), 5U);
    for (const SlotInfo& slot : slots) {
      EXPECT_EQ(slot.kind, 'W');
      EXPECT_EQ(slot.micro_batch, 5);
    }
    const auto buckets = collectives(programs[stage], Stream::kData, GroupKind::kData);
    EXPECT_EQ(total_bytes(buckets), 4.0 * static_cast<double>(parameters_of_two_stages()[stage]));
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

/// Adam reads the gradient (4), reads and writes master weight and two moments (24); the parameter is copied
/// from its master (4 + 2). Of all gradients Megatron-LM looks for numbers that are none (4), and divides
/// them by the number of replicas (8). With a distributed optimizer each rank adds up the norm of its shard;
/// in fp32 the parameter is its own master.
TEST(Optimizer, UpdatesItsShardOnly) {
  const double parameters = 8 * kLayerParameters + kEmbeddingParameters + 2 * kHidden;
  ParallelPlan plan = split_plan({1, 1, 1, 4});
  EXPECT_EQ(optimizer_bytes(plan, "adam"), 28 * parameters);
  EXPECT_EQ(optimizer_bytes(plan, "parameters from fp32"), 6 * parameters);
  plan.sharding = plan::Sharding::kZero1;
  EXPECT_EQ(optimizer_bytes(plan, "adam"), 28 * parameters / 4);
  EXPECT_EQ(optimizer_bytes(plan, "parameters from fp32"), 6 * parameters / 4);
  EXPECT_EQ(optimizer_bytes(plan, "gradient check"), 4 * parameters);
  EXPECT_EQ(optimizer_bytes(plan, "gradient average"), 8 * parameters);
  EXPECT_EQ(optimizer_bytes(plan, "gradient norm"), 4 * parameters / 4);
  plan.gradient_bytes = 2;
  EXPECT_EQ(optimizer_bytes(plan, "gradient norm"), 2 * parameters / 4);
  plan.precision = plan::Precision::kFp32;
  EXPECT_EQ(optimizer_bytes(plan, "adam"), 28 * parameters / 4);
  EXPECT_EQ(optimizer_bytes(plan, "parameters from fp32"), 0);
  EXPECT_EQ(optimizer_bytes(split_plan({}), "gradient average"), 0);
  // Others divide while they add up, and their optimizer writes the parameter itself.
  plan = split_plan({1, 1, 1, 4});
  plan.framework = plan::Framework::kDeepSpeed;
  EXPECT_EQ(optimizer_bytes(plan, "adam"), 30 * parameters);
  EXPECT_EQ(optimizer_bytes(plan, "gradient average"), 0);
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

/// Buckets of two layers: embedding and two layers, two, two, two and the final norm.
TEST(ParameterGather, RunsUnderTheForwardBucketByBucket) {
  ParallelPlan plan = split_plan({1, 1, 1, 4}, 2);
  plan.sharding = plan::Sharding::kZero1;
  plan.overlap_parameter_gather = true;
  plan.overlap_gradient_reduction = false;
  plan.bucket_parameters = 2 * kLayerParameters;
  const Program program = programs_of(gpt({8}), plan).front();
  std::vector<double> sizes;
  for (const Instruction& gather : collectives(program, Stream::kData, GroupKind::kData)) {
    EXPECT_EQ(gather.collective, CollectiveOp::kAllGather);
    sizes.push_back(gather.amount / 2);
  }
  EXPECT_EQ(sizes, (std::vector<double>{kEmbeddingParameters + kLayerParameters, 2.0 * kLayerParameters,
                                        2.0 * kLayerParameters, 2.0 * kLayerParameters,
                                        kLayerParameters + 2.0 * kHidden}));
  // Only the first micro-batch waits, once per bucket; after the optimizer nothing is gathered.
  int waits = 0;
  for (const Instruction& each : program.stream(Stream::kCompute)) {
    waits += each.op == Opcode::kWait ? 1 : 0;
    EXPECT_FALSE(each.op == Opcode::kCollective && each.collective == CollectiveOp::kAllGather);
  }
  EXPECT_EQ(waits, 5);
}

/// On the real network the step gets shorter, by no more than the gather takes.
TEST(ParameterGather, HidesWhatItCan) {
  const auto step_time = [](bool overlap) {
    ParallelPlan plan = split_plan({1, 2, 1, 4}, 4);
    plan.sharding = plan::Sharding::kZero1;
    plan.overlap_parameter_gather = overlap;
    plan.bucket_parameters = kLayerParameters;
    const program::Job job = tests::make_job(gpt({8}), tests::round_cluster(), plan, {true, false});
    return engine::make_ideal_executor()->run(job).step_time;
  };
  const Seconds gather = 0.75 * 2 * (4 * kLayerParameters + kEmbeddingParameters) / 100e9;
  EXPECT_LT(step_time(true), step_time(false));
  EXPECT_GT(step_time(true), step_time(false) - 1.5 * gather);
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

}  // namespace
}  // namespace trainsim::lowering
