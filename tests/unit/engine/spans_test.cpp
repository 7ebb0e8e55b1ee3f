// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/executor.hpp"
#include "sim/program/span.hpp"
#include "sim/program/timeline.hpp"

namespace trainsim::engine {
namespace {

using program::Cause;
using program::Instruction;
using program::Opcode;
using program::PeerKind;
using program::Span;
using program::SpanKind;
using program::Stream;
using program::Where;

/// Half a second over a wire of 1 GB/s.
constexpr double kMessage = 0.5e9;

Instruction compute(Cause cause, Seconds seconds) {
  Instruction instruction;
  instruction.op = Opcode::kCompute;
  instruction.cause = cause;
  instruction.amount = seconds;
  return instruction;
}

Instruction transfer(Opcode op, std::uint32_t id, PeerKind peer = PeerKind::kNextStage) {
  Instruction instruction;
  instruction.op = op;
  instruction.cause = Cause::kPipelineCommunication;
  instruction.peer = peer;
  instruction.id = id;
  instruction.amount = op == Opcode::kSend ? kMessage : 0;
  return instruction;
}

Instruction mark(Opcode op, std::uint32_t slot) {
  Instruction instruction;
  instruction.op = op;
  instruction.id = slot;
  return instruction;
}

/// Appends a slot: F takes 1 s, B takes 2 s.
void add_slot(program::Program& program, char kind, std::int32_t micro_batch) {
  const auto slot = static_cast<std::uint32_t>(program.slots.size());
  program.slots.push_back({kind, micro_batch, 0});
  std::vector<Instruction>& code = program.stream(Stream::kCompute);
  code.push_back(mark(Opcode::kSlotBegin, slot));
  code.push_back(kind == 'F' ? compute(Cause::kForward, 1) : compute(Cause::kBackward, 2));
  code.push_back(mark(Opcode::kSlotEnd, slot));
}

/// Two stages and two micro-batches: the first stage runs F0 F1 B0 B1, the second F0 B0 F1 B1.
program::Job two_stages() {
  program::Job job;
  job.links = {{"down", 1e9, 1}, {"up", 1e9, 1}};
  job.programs.resize(2);
  for (program::Program& program : job.programs) {
    program.segments.resize(1);
    program.segments[0].name = "layer";
    program.messages = 2;
  }
  program::Program& first = job.programs[0];
  std::vector<Instruction>& head = first.stream(Stream::kCompute);
  add_slot(first, 'F', 0);
  head.push_back(transfer(Opcode::kSend, 0));
  add_slot(first, 'F', 1);
  head.push_back(transfer(Opcode::kSend, 1));
  head.push_back(transfer(Opcode::kReceive, 0));
  add_slot(first, 'B', 0);
  head.push_back(transfer(Opcode::kReceive, 1));
  add_slot(first, 'B', 1);
  program::Program& second = job.programs[1];
  std::vector<Instruction>& tail = second.stream(Stream::kCompute);
  for (const std::uint32_t micro_batch : {0U, 1U}) {
    tail.push_back(transfer(Opcode::kReceive, micro_batch));
    add_slot(second, 'F', static_cast<std::int32_t>(micro_batch));
    add_slot(second, 'B', static_cast<std::int32_t>(micro_batch));
    tail.push_back(transfer(Opcode::kSend, micro_batch, PeerKind::kPreviousStage));
  }
  job.ranks.resize(2);
  job.ranks[1].id = job.ranks[1].stage = 1;
  job.ranks[1].program = 1;
  job.ranks[0].peers[0].rank = 1;
  job.ranks[0].peers[0].flow.route = {{0, 1, 1.0}};
  job.ranks[1].peers[1].rank = 0;
  job.ranks[1].peers[1].flow.route = {{1, 1, 1.0}};
  return job;
}

struct Expected {
  Seconds begin;
  Seconds end;
  SpanKind kind;
  Cause cause;
};

void expect_spans(const std::vector<Span>& spans, const std::vector<Expected>& expected) {
  ASSERT_EQ(spans.size(), expected.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_NEAR(spans[i].begin, expected[i].begin, 1e-9);
    EXPECT_NEAR(spans[i].end, expected[i].end, 1e-9);
    EXPECT_EQ(spans[i].kind, expected[i].kind);
    EXPECT_EQ(spans[i].cause, expected[i].cause);
  }
}

const std::vector<Span>& spans_of(const program::Timeline& timeline, std::size_t rank,
                                  Stream stream = Stream::kCompute) {
  return timeline.ranks[rank].spans[static_cast<std::size_t>(stream)];
}

/// Drawn by hand, a letter or dash per half second:
///   stage 0  F0F0 s F1F1 s  ---r B0B0B0B0 --r B1B1B1B1
///   stage 1  -- r F0F0 B0B0B0B0 s F1F1 B1B1B1B1 s ----
void expect_two_stages(const program::Timeline& timeline) {
  constexpr SpanKind kernels = SpanKind::kKernels;
  constexpr Cause pipeline = Cause::kPipelineCommunication;
  EXPECT_NEAR(timeline.step_time, 10.5, 1e-9);
  EXPECT_TRUE(timeline.has_spans);
  expect_spans(spans_of(timeline, 0), {{0, 1, kernels, Cause::kForward},
                                       {1, 1.5, SpanKind::kSend, pipeline},
                                       {1.5, 2.5, kernels, Cause::kForward},
                                       {2.5, 3, SpanKind::kSend, pipeline},
                                       {3, 4.5, SpanKind::kWait, Cause::kBubble},
                                       {4.5, 5, SpanKind::kReceive, pipeline},
                                       {5, 7, kernels, Cause::kBackward},
                                       {7, 8, SpanKind::kWait, Cause::kBubble},
                                       {8, 8.5, SpanKind::kReceive, pipeline},
                                       {8.5, 10.5, kernels, Cause::kBackward}});
  // The second message is there long before it is wanted; the last stretch waits for the pipeline to drain.
  expect_spans(spans_of(timeline, 1), {{0, 1, SpanKind::kWait, Cause::kBubble},
                                       {1, 1.5, SpanKind::kReceive, pipeline},
                                       {1.5, 2.5, kernels, Cause::kForward},
                                       {2.5, 4.5, kernels, Cause::kBackward},
                                       {4.5, 5, SpanKind::kSend, pipeline},
                                       {5, 5, SpanKind::kReceive, pipeline},
                                       {5, 6, kernels, Cause::kForward},
                                       {6, 8, kernels, Cause::kBackward},
                                       {8, 8.5, SpanKind::kSend, pipeline},
                                       {8.5, 10.5, SpanKind::kWait, Cause::kBubble}});
}

ExecutorOptions recording() {
  ExecutorOptions options;
  options.record_spans = true;
  return options;
}

TEST(Spans, OfTwoStagesOnTheIdealExecutor) {
  expect_two_stages(make_ideal_executor(recording())->run(two_stages()));
}

TEST(Spans, OfTwoStagesOnSimgrid) {
  expect_two_stages(make_simgrid_executor(recording())->run(two_stages()));
}

TEST(Spans, AreNotRecordedUnlessAskedFor) {
  for (const program::Timeline& timeline :
       {make_ideal_executor()->run(two_stages()), make_simgrid_executor()->run(two_stages())}) {
    EXPECT_FALSE(timeline.has_spans);
    for (const program::RankTimeline& rank : timeline.ranks) {
      for (const std::vector<Span>& spans : rank.spans) EXPECT_TRUE(spans.empty());
    }
  }
}

TEST(Spans, DescribeTheirInstruction) {
  program::Job job = two_stages();
  // Stage 0 sends its first output for slot 0, from instruction 3 on for none.
  job.programs[0].places[0] = {{0, 0, 5}, {4, -1, -1}};
  const program::Timeline timeline = make_ideal_executor(recording())->run(job);
  const auto describe = [&](std::size_t rank, std::size_t span) {
    return program::describe(job, rank, Stream::kCompute, spans_of(timeline, rank)[span]);
  };
  const program::SpanDetails kernels = describe(0, 0);
  EXPECT_EQ(kernels.name, "layer");
  EXPECT_EQ(kernels.slot, 0);
  EXPECT_EQ(kernels.layer, 5);
  EXPECT_EQ(kernels.receiver, -1);
  const program::SpanDetails send = describe(0, 1);
  EXPECT_EQ(send.name, "nccl:send");
  EXPECT_EQ(send.slot, 0);
  EXPECT_EQ(send.receiver, 1);
  EXPECT_EQ(send.message, 0);
  EXPECT_EQ(send.bytes, kMessage);
  EXPECT_EQ(describe(0, 2).slot, -1);
  EXPECT_EQ(describe(0, 3).message, 1);
  EXPECT_EQ(describe(0, 4).name, "bubble");
  const program::SpanDetails receive = describe(1, 5);
  EXPECT_EQ(receive.name, "nccl:recv");
  EXPECT_EQ(receive.message, 1);
  EXPECT_EQ(describe(1, 9).name, "bubble");
}

/// 1 s of kernels whose launches take 3 s: idle for 2 s. Then a collective that the others reach 1 s later
/// and that takes 2 s.
TEST(Spans, ShowLaunchesAndSlowerMembers) {
  program::RankTimeline rank;
  program::RankRecorder recorder(rank, true);
  recorder.compute({Stream::kCompute, 0, Cause::kForward}, 0, 1, 3);
  recorder.collective({Stream::kCompute, 1, Cause::kTensorCommunication}, 3, 4, 6);
  expect_spans(rank.spans[0], {{0, 2, SpanKind::kWait, Cause::kLaunch},
                               {2, 3, SpanKind::kKernels, Cause::kForward},
                               {3, 4, SpanKind::kWait, Cause::kImbalance},
                               {4, 6, SpanKind::kCollective, Cause::kTensorCommunication}});
}

/// The data stream waits for members from 2 s to 5 s, and its collective ends at 7 s; the compute stream
/// waits for that from 1 s on.
TEST(Spans, SplitAWaitByWhatTheOtherStreamDid) {
  program::RankTimeline rank;
  program::RankRecorder recorder(rank, true);
  recorder.collective({Stream::kData, 3, Cause::kDataCommunication}, 2, 5, 7);
  recorder.wait({Stream::kCompute, 8, Cause::kDataCommunication}, 1, 7);
  expect_spans(
      rank.spans[static_cast<std::size_t>(Stream::kData)],
      {{2, 5, SpanKind::kWait, Cause::kImbalance}, {5, 7, SpanKind::kCollective, Cause::kDataCommunication}});
  expect_spans(rank.spans[0], {{1, 2, SpanKind::kWait, Cause::kDataCommunication},
                               {2, 5, SpanKind::kWait, Cause::kImbalance},
                               {5, 7, SpanKind::kWait, Cause::kDataCommunication}});
  EXPECT_EQ(rank.spans[0][1].instruction, 8U);
}

/// One rank ends its only slot at 4 s, the other at 6 s and works until 8 s: the first waits 2 s for the
/// pipeline to drain, and 2 s for the step to end.
TEST(Spans, SplitTheLastWaitWhereThePipelineHasDrained) {
  program::Timeline timeline;
  timeline.has_spans = true;
  timeline.ranks.resize(2);
  for (const std::size_t r : {0U, 1U}) {
    const Seconds end = r == 0 ? 4 : 6;
    program::RankRecorder recorder(timeline.ranks[r], true);
    recorder.begin_slot(0, 0);
    recorder.compute({Stream::kCompute, 1, Cause::kBackward}, 0, end, end);
    recorder.end_slot(end);
    if (r == 1) recorder.compute({Stream::kCompute, 3, Cause::kOptimizer}, 6, 2, 8);
    recorder.finish(r == 0 ? 4 : 8);
  }
  close(timeline);
  expect_spans(spans_of(timeline, 0), {{0, 4, SpanKind::kKernels, Cause::kBackward},
                                       {4, 6, SpanKind::kWait, Cause::kBubble},
                                       {6, 8, SpanKind::kWait, Cause::kImbalance}});
  EXPECT_EQ(spans_of(timeline, 0)[2].instruction, Span::kStepEnd);
  EXPECT_EQ(spans_of(timeline, 1).size(), 2U);
  EXPECT_DOUBLE_EQ(timeline.ranks[0].by_cause[static_cast<std::size_t>(Cause::kBubble)], 2);
  EXPECT_DOUBLE_EQ(timeline.ranks[0].by_cause[static_cast<std::size_t>(Cause::kImbalance)], 2);
}

}  // namespace
}  // namespace trainsim::engine
