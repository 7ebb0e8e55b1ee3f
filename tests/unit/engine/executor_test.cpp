// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/executor.hpp"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "sim/engine/flow_time.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::engine {
namespace {

using program::CollectiveOp;
using program::GroupKind;
using program::Instruction;
using program::Opcode;
using program::PeerKind;
using program::Stream;

/// Compute of segment 0, which costs the host nothing unless a test says so.
Instruction compute(double seconds) {
  Instruction instruction;
  instruction.op = Opcode::kCompute;
  instruction.amount = seconds;
  return instruction;
}

/// A program with that segment.
program::Program one_segment(Seconds launch = 0) {
  program::Program program;
  program.segments.resize(1);
  program.segments[0].launch_seconds = launch;
  return program;
}

Instruction all_reduce(double bytes) {
  Instruction instruction;
  instruction.op = Opcode::kCollective;
  instruction.group = GroupKind::kData;
  instruction.cause = program::Cause::kDataCommunication;
  instruction.amount = bytes;
  return instruction;
}

Instruction message(Opcode op, std::uint32_t id, double bytes) {
  Instruction instruction;
  instruction.op = op;
  instruction.peer = PeerKind::kNextStage;
  instruction.cause = program::Cause::kPipelineCommunication;
  instruction.id = id;
  instruction.amount = bytes;
  return instruction;
}

/// Two ranks: the first sends twice to the second, on two streams, over one link of 1 GB/s.
program::Job two_messages() {
  program::Job job;
  job.links = {{"wire", 1e9, 1}};
  job.programs.assign(2, one_segment());
  job.programs[0].stream(Stream::kCompute) = {message(Opcode::kSend, 0, 1e9)};
  job.programs[0].stream(Stream::kSend) = {message(Opcode::kSend, 1, 2e9)};
  job.programs[1].messages = 2;
  job.programs[1].stream(Stream::kCompute) = {message(Opcode::kReceive, 0, 0),
                                              message(Opcode::kReceive, 1, 0)};
  job.ranks.resize(2);
  job.ranks[1].id = 1;
  job.ranks[1].program = 1;
  job.ranks[0].peers[0].rank = 1;
  job.ranks[0].peers[0].flow.route = {{0, 1, 1.0}};
  return job;
}

TEST(Executor, SimgridSharesALinkFairly) {
  // Both flows run at 0.5 GB/s until the first has moved 1 GB at 2 s; the second then has 1 GB left at 1
  // GB/s: 3 s.
  const program::Timeline timeline = make_simgrid_executor()->run(two_messages());
  EXPECT_NEAR(timeline.step_time, 3.0, 1e-9);
  EXPECT_NEAR(timeline.ranks[0].by_cause[static_cast<std::size_t>(program::Cause::kPipelineCommunication)],
              2.0, 1e-9);
}

TEST(Executor, IdealGivesEveryFlowTheWholeLink) {
  EXPECT_NEAR(make_ideal_executor()->run(two_messages()).step_time, 2.0, 1e-12);
}

/// A ring of `size` over private links of 1 GB/s with 10 us base and 1 us per step, folded to one rank.
program::Job ring(std::int64_t size, double bytes, CollectiveOp op) {
  program::Job job;
  job.links = {{"port", 1e9, 1}};
  job.programs.assign(1, one_segment());
  job.programs[0].stream(Stream::kCompute) = {all_reduce(bytes)};
  job.programs[0].stream(Stream::kCompute)[0].collective = op;
  job.ranks.resize(1);
  job.ranks[0].represents = size;
  job.ranks[0].groups[static_cast<std::size_t>(GroupKind::kData)] = 0;
  program::Group group;
  group.kind = GroupKind::kData;
  group.members = {0};
  group.size = size;
  group.protocols = {{Algorithm::kRing, WireProtocol::kSimple, 10e-6, 1e-6}};
  group.flows = {{{{{0, 1, 1.0}}, 1e-6}, 1.0}};
  job.groups = {group};
  return job;
}

/// 2 (P-1)/P N/B + base + 2 (P-1) steps for all-reduce, half the bytes and steps for the others.
TEST(Executor, RingCollectivesMeetTheirClosedForm) {
  for (const std::int64_t size : {2, 3, 8, 64}) {
    const auto p = static_cast<double>(size);
    const double bytes = 640e6;
    const double reduce = 2 * (p - 1) / p * bytes / 1e9 + 10e-6 + 2 * (p - 1) * 1e-6;
    const double gather = (p - 1) / p * bytes / 1e9 + 10e-6 + (p - 1) * 1e-6;
    const auto simulated = [&](CollectiveOp op, bool closed_form) {
      return tests::in_child([&] {
               ExecutorOptions options;
               options.closed_form_collectives = closed_form;
               return std::vector<double>{
                   make_simgrid_executor(options)->run(ring(size, bytes, op)).step_time};
             })
          .at(0);
    };
    EXPECT_NEAR(simulated(CollectiveOp::kAllReduce, true), reduce, 1e-8);
    EXPECT_NEAR(simulated(CollectiveOp::kAllReduce, false), reduce, 1e-8);
    EXPECT_NEAR(simulated(CollectiveOp::kAllGather, false), gather, 1e-8);
    EXPECT_NEAR(simulated(CollectiveOp::kReduceScatter, true), gather, 1e-8);
    EXPECT_NEAR(make_ideal_executor()->run(ring(size, bytes, CollectiveOp::kAllReduce)).step_time, reduce,
                1e-8);
  }
}

TEST(Executor, MembersLeaveACollectiveTogether) {
  program::Job job = ring(2, 1e9, CollectiveOp::kAllReduce);
  job.programs.push_back(job.programs[0]);
  auto& late = job.programs[1].stream(Stream::kCompute);
  late.insert(late.begin(), compute(0.5));
  job.ranks.push_back(job.ranks[0]);
  job.ranks[0].represents = job.ranks[1].represents = 1;
  job.ranks[1].id = 1;
  job.ranks[1].program = 1;
  job.groups[0].members = {0, 1};
  // 0.5 s late, 10 us + 2 steps, 1 GB at 1 GB/s.
  const double end = 0.5 + 12e-6 + 1.0;
  for (const program::Timeline& timeline :
       {make_ideal_executor()->run(job), make_simgrid_executor()->run(job)}) {
    EXPECT_NEAR(timeline.ranks[0].end, end, 1e-8);
    EXPECT_NEAR(timeline.ranks[1].end, end, 1e-8);
    EXPECT_NEAR(timeline.ranks[0].by_cause[static_cast<std::size_t>(program::Cause::kImbalance)], 0.5, 1e-8);
  }
}

/// Four segments of 1 s that take 3 s to launch: the first ends when it is launched, at 3 s, and so on; a GPU
/// that starts with 10 s of work lets the host run ahead and never waits, unless the host has synchronised
/// with it.
TEST(Executor, TheGpuWaitsForAHostThatDoesNotKeepUp) {
  program::Job job;
  job.programs = {one_segment(3.0)};
  job.ranks.resize(1);
  std::vector<Instruction>& code = job.programs[0].stream(Stream::kCompute);
  code = {compute(1), compute(1), compute(1), compute(1)};
  const auto launch_wait = [&](const program::Timeline& timeline) {
    return timeline.ranks[0].by_cause[static_cast<std::size_t>(program::Cause::kLaunch)];
  };
  const program::Timeline starved = make_ideal_executor()->run(job);
  EXPECT_NEAR(starved.step_time, 12.0, 1e-12);
  EXPECT_NEAR(launch_wait(starved), 8.0, 1e-12);
  code = {compute(10), compute(1), compute(1)};
  const program::Timeline ahead = make_ideal_executor()->run(job);
  EXPECT_NEAR(ahead.step_time, 12.0, 1e-12);
  EXPECT_NEAR(launch_wait(ahead), 0.0, 1e-12);
  Instruction synchronize;
  synchronize.op = Opcode::kSynchronize;
  code = {compute(10), synchronize, compute(1), compute(1)};
  // Launched at 13 s and 16 s.
  const program::Timeline synchronised = make_ideal_executor()->run(job);
  EXPECT_NEAR(synchronised.step_time, 16.0, 1e-9);
  EXPECT_NEAR(launch_wait(synchronised), 4.0, 1e-9);
  // After 5 s of work the first of the two begins at 15 s and is launched by 18 s, the second by 21 s.
  code[1].amount = 5;
  const program::Timeline busy = make_simgrid_executor()->run(job);
  EXPECT_NEAR(busy.step_time, 21.0, 1e-9);
  EXPECT_NEAR(launch_wait(busy), 9.0, 1e-9);
}

TEST(Executor, ABlockingHostLetsTheGpuIdleAtEveryLaunch) {
  program::Job job;
  job.programs.assign(1, one_segment());
  job.programs[0].segments[0].launch_seconds = 0.5;
  job.programs[0].segments[0].blocking = true;
  job.programs[0].stream(Stream::kCompute) = {compute(10), compute(1)};
  job.ranks.resize(1);
  const program::Timeline timeline = make_ideal_executor()->run(job);
  EXPECT_NEAR(timeline.step_time, 12.0, 1e-12);
  EXPECT_NEAR(timeline.ranks[0].by_cause[static_cast<std::size_t>(program::Cause::kLaunch)], 1.0, 1e-12);
}

TEST(Executor, EventsOrderStreams) {
  program::Job job;
  job.programs.assign(1, one_segment());
  job.programs[0].events = 1;
  Instruction record;
  record.op = Opcode::kRecord;
  Instruction wait;
  wait.op = Opcode::kWait;
  job.programs[0].stream(Stream::kCompute) = {compute(2.0), record, compute(1.0)};
  job.programs[0].stream(Stream::kData) = {compute(0.5), wait, compute(4.0)};
  job.ranks.resize(1);
  // The data stream waits until 2 s and then works 4 s.
  EXPECT_NEAR(make_ideal_executor()->run(job).step_time, 6.0, 1e-12);
  EXPECT_NEAR(make_simgrid_executor()->run(job).step_time, 6.0, 1e-12);
}

/// Two streams wait for other members at overlapping times; an event of one must not be charged with the
/// other's wait, and no cause may come out negative.
TEST(Executor, WaitsOfOneStreamDoNotCountForAnother) {
  program::RankTimeline rank;
  program::RankRecorder recorder(rank);
  recorder.collective({Stream::kData, 0, program::Cause::kDataCommunication}, 0.0, 10.0, 11.0);
  recorder.collective({Stream::kTensor, 0, program::Cause::kTensorCommunication}, 2.0, 5.0, 6.0);
  recorder.wait({Stream::kCompute, 0, program::Cause::kTensorCommunication}, 1.0, 6.0);
  // Of the 5 s, 3 s were the tensor stream's own wait for members.
  EXPECT_DOUBLE_EQ(rank.by_cause[static_cast<std::size_t>(program::Cause::kImbalance)], 3.0);
  EXPECT_DOUBLE_EQ(rank.by_cause[static_cast<std::size_t>(program::Cause::kTensorCommunication)], 2.0);
}

/// Both executors name who waits for what when programs can't end; neither hangs.
TEST(Executor, DeadlocksAreNamed) {
  program::Job job;
  job.programs.assign(1, one_segment());
  job.programs[0].messages = 1;
  job.programs[0].stream(Stream::kCompute) = {message(Opcode::kReceive, 0, 0)};
  job.ranks.resize(1);
  job.ranks[0].id = 7;
  const std::string expected =
      "the programs wait for each other for ever:\n  rank 7 (stage 0), compute stream: waits for message 0";
  try {
    make_ideal_executor()->run(job);
    FAIL() << "no deadlock found";
  } catch (const std::logic_error& error) {
    EXPECT_EQ(error.what(), expected);
  }
  EXPECT_THROW(make_simgrid_executor()->run(job), std::logic_error);
}

TEST(Executor, SimgridRefusesASecondRun) {
  program::Job job;
  job.programs.assign(1, one_segment());
  job.programs[0].stream(Stream::kCompute) = {compute(1)};
  job.ranks.resize(1);
  EXPECT_NEAR(make_simgrid_executor()->run(job).step_time, 1.0, 1e-12);
  EXPECT_THROW(make_simgrid_executor()->run(job), std::logic_error);
}

}  // namespace
}  // namespace trainsim::engine
