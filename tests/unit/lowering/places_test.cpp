// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/lowering/support.hpp"

namespace trainsim::lowering {
namespace {

using program::Instruction;
using program::Opcode;
using program::Place;
using program::Program;
using program::Stream;
using tests::gpt;
using tests::programs_of;
using tests::split_plan;

/// Calls `visit(instruction, place)` for every instruction of a stream with this opcode.
template <class Visit>
void for_each(const Program& program, Stream stream, Opcode op, const Visit& visit) {
  const std::vector<Instruction>& code = program.stream(stream);
  for (std::uint32_t i = 0; i < code.size(); ++i) {
    if (code[i].op == op) visit(code[i], program.place_of(stream, i));
  }
}

/// Layers in which segments of this name run, by slot.
std::map<std::int32_t, std::vector<std::int32_t>> layers_by_slot(const Program& program, const char* name) {
  std::map<std::int32_t, std::vector<std::int32_t>> layers;
  for_each(program, Stream::kCompute, Opcode::kCompute, [&](const Instruction& compute, const Place& place) {
    if (program.segments[compute.id].name.find(name) != std::string::npos)
      layers[place.slot].push_back(place.layer);
  });
  return layers;
}

using Layers = std::vector<std::int32_t>;

/// 8 layers in 2 stages of 2 chunks: stage 0 holds layers 0, 1 and 4, 5; stage 1 holds 2, 3 and 6, 7.
TEST(Places, NameTheSlotAndTheLayerOfKernels) {
  const std::vector<Program> programs = programs_of(gpt({8}), split_plan({1, 2, 2, 1}, 2));
  for (const std::int32_t stage : {0, 1}) {
    const Program& program = programs[static_cast<std::size_t>(stage)];
    const auto forward = layers_by_slot(program, "mlp +");
    const auto attention = layers_by_slot(program, "qkv weight gradient");
    ASSERT_EQ(program.slots.size(), 8U);
    for (std::int32_t slot = 0; slot < 8; ++slot) {
      SCOPED_TRACE(slot);
      const program::SlotInfo& info = program.slots[static_cast<std::size_t>(slot)];
      const std::int32_t first = 4 * info.chunk + 2 * stage;
      if (info.kind == 'F') {
        EXPECT_EQ(forward.at(slot), (Layers{first, first + 1}));
      } else {
        EXPECT_EQ(attention.at(slot), (Layers{first + 1, first}));
      }
    }
  }
}

TEST(Places, OfTheEmbeddingTheHeadAndTheOptimizerAreNoLayers) {
  const std::vector<Program> programs = programs_of(gpt({4}), split_plan({1, 2, 1, 1}, 1));
  EXPECT_EQ(layers_by_slot(programs[0], "embedding"), (std::map<std::int32_t, Layers>{{0, {-1}}, {1, {-1}}}));
  EXPECT_EQ(layers_by_slot(programs[1], "logits + loss"), (std::map<std::int32_t, Layers>{{0, {-1}}}));
  EXPECT_EQ(layers_by_slot(programs[1], "optimizer"), (std::map<std::int32_t, Layers>{{-1, {-1}}}));
}

/// A message is numbered by chunk and micro-batch, backward ones after all forward ones; it belongs to the
/// slot that makes it and to the slot that needs it.
TEST(Places, OfTransfersAreTheSlotsThatTheyServe) {
  for (const bool overlap : {false, true}) {
    plan::ParallelPlan plan = split_plan({1, 2, 1, 1}, 3);
    plan.overlap_point_to_point = overlap;
    const std::vector<Program> programs = programs_of(gpt({2}), plan);
    const auto expect_slots = [&](std::size_t stage, Stream stream, Opcode op, char kind) {
      int seen = 0;
      for_each(programs[stage], stream, op, [&](const Instruction& transfer, const Place& place) {
        ASSERT_GE(place.slot, 0);
        const program::SlotInfo& slot = programs[stage].slots[static_cast<std::size_t>(place.slot)];
        EXPECT_EQ(slot.kind, kind);
        EXPECT_EQ(slot.micro_batch, static_cast<std::int32_t>(transfer.id % 3));
        EXPECT_EQ(place.layer, -1);
        ++seen;
      });
      EXPECT_EQ(seen, 3);
    };
    const Stream stream = overlap ? Stream::kSend : Stream::kCompute;
    expect_slots(0, stream, Opcode::kSend, 'F');
    expect_slots(1, stream, Opcode::kSend, 'B');
    expect_slots(0, Stream::kCompute, Opcode::kReceive, 'B');
    expect_slots(1, Stream::kCompute, Opcode::kReceive, 'F');
  }
}

TEST(Places, OfRecomputedLayersAreTheirOwn) {
  plan::ParallelPlan plan = split_plan({1, 1, 1, 1}, 1);
  plan.recompute.granularity = plan::RecomputeGranularity::kFull;
  plan.recompute.layers = 2;
  const std::vector<Program> programs = programs_of(gpt({4}), plan);
  // Backward brings layers 2 and 3 back, then 0 and 1.
  EXPECT_EQ(layers_by_slot(programs[0], "mlp +").at(1), (Layers{2, 3, 0, 1}));
}

/// FSDP gathers a layer's parameters under the layer before it; they belong to the layer gathered.
TEST(Places, OfGatheredParametersAreTheLayerThatNeedsThem) {
  plan::ParallelPlan plan = split_plan({1, 1, 1, 2}, 1);
  plan.sharding = plan::Sharding::kZero3;
  const std::vector<Program> programs = programs_of(gpt({3}), plan);
  std::map<std::int32_t, Layers> gathered;
  std::map<std::int32_t, Layers> scattered;
  for_each(programs[0], Stream::kData, Opcode::kCollective,
           [&](const Instruction& collective, const Place& place) {
             const bool gather = collective.collective == program::CollectiveOp::kAllGather;
             (gather ? gathered : scattered)[place.slot].push_back(place.layer);
           });
  EXPECT_EQ(gathered.at(0), (Layers{-1, 0, 1, 2}));
  EXPECT_EQ(gathered.at(1), (Layers{2, 1, 0}));
  EXPECT_EQ(scattered.at(1), (Layers{2, 1, 0, -1}));
}

}  // namespace
}  // namespace trainsim::lowering
