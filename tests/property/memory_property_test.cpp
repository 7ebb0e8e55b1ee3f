// SPDX-License-Identifier: Apache-2.0
// What holds for the memory of every plan.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "sim/lowering/lower.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/ledger.hpp"
#include "sim/memory/reservation.hpp"
#include "tests/unit/lowering/support.hpp"

namespace trainsim {
namespace {

using plan::Framework;
using plan::ParallelPlan;
using plan::Sharding;
using program::MemoryCategory;

struct Case {
  model::ModelSpec model;
  ParallelPlan plan;
};

Case random_case() {
  Case random;
  random.model = tests::gpt({*rc::gen::element<std::int64_t>(8, 16)});
  random.model.dropout = *rc::gen::element(0.0, 0.1);
  random.model.attention = *rc::gen::element(model::Attention::kStandard, model::Attention::kFlash);
  random.model.activation = *rc::gen::element(model::Activation::kGelu, model::Activation::kSwiglu);
  random.model.normalization =
      *rc::gen::element(model::Normalization::kLayerNorm, model::Normalization::kRmsNorm);
  random.model.position_embedding =
      *rc::gen::element(model::PositionEmbedding::kLearned, model::PositionEmbedding::kRotary);
  random.model.num_key_value_heads = *rc::gen::element<std::int64_t>(4, 8);
  const std::int64_t pipeline = *rc::gen::element<std::int64_t>(1, 2, 4);
  const std::int64_t chunks = pipeline > 1 ? *rc::gen::element<std::int64_t>(1, 2) : 1;
  const std::int64_t data = *rc::gen::element<std::int64_t>(1, 2, 4);
  random.plan = tests::split_plan({*rc::gen::element<std::int64_t>(1, 2, 4), pipeline, chunks, data},
                                  pipeline * *rc::gen::inRange(1, 3));
  ParallelPlan& plan = random.plan;
  if (random.model.attention == model::Attention::kFlash) {
    plan.context_parallel = *rc::gen::element<std::int64_t>(1, 2, 4);
    plan.context_communication =
        *rc::gen::element(plan::ContextCommunication::kP2p, plan::ContextCommunication::kAllGather);
    plan.gpus *= plan.context_parallel;
  }
  if (chunks == 1 && *rc::gen::arbitrary<bool>()) plan.schedule = plan::ScheduleKind::kGpipe;
  plan.sequence_parallel = *rc::gen::arbitrary<bool>();
  plan.fusion = *rc::gen::element(plan::Fusion::kNone, plan::Fusion::kStandard, plan::Fusion::kCompiled);
  plan.framework = *rc::gen::element(Framework::kMegatron, Framework::kFsdp, Framework::kDeepSpeed);
  plan.loss = *rc::gen::element(plan::Loss::kStandard, plan::Loss::kFused, plan::Loss::kCompiled);
  plan.transformer_engine = *rc::gen::arbitrary<bool>();
  plan.optimizer = *rc::gen::element(plan::Optimizer::kAdam, plan::Optimizer::kLion, plan::Optimizer::kSgd);
  plan.gradient_bytes = *rc::gen::element(2, 4);
  plan.lora.rank = *rc::gen::element(0, 0, 8);
  if (chunks == 1 && plan.lora.rank == 0 && *rc::gen::arbitrary<bool>())
    plan.schedule = *rc::gen::element(plan::ScheduleKind::kZeroBubbleH1, plan::ScheduleKind::kZeroBubbleH2);
  plan.sharding =
      pipeline > 1 && plan.framework != Framework::kFsdp
          ? *rc::gen::element(Sharding::kNone, Sharding::kZero1)
          : *rc::gen::element(Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3);
  const bool one_by_one = plan.splits_backward() || plan.framework != Framework::kFsdp;
  if (plan.works_by_units() && one_by_one) plan.schedule = plan::ScheduleKind::kOneFOneB;
  plan.units.layers = *rc::gen::inRange(1, 4);
  plan.recompute.granularity =
      *rc::gen::element(plan::RecomputeGranularity::kNone, plan::RecomputeGranularity::kSelective,
                        plan::RecomputeGranularity::kFull);
  plan.recompute.modules = {*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                            *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()};
  if (pipeline > 1) {
    plan.recompute.partial_micro_batches = *rc::gen::inRange(0, 6);
    plan.recompute.partial_layers = *rc::gen::inRange(0, 3);
  } else {
    plan.offloaded_layers = *rc::gen::inRange<std::int64_t>(0, random.model.num_layers);
  }
  if (!plan.shards_parameters()) {
    plan.recompute.method = *rc::gen::element(plan::RecomputeMethod::kUniform, plan::RecomputeMethod::kBlock);
    plan.recompute.layers = *rc::gen::inRange(1, 4);
  }
  const bool by_operators =
      plan.framework == Framework::kFsdp && plan.lora.rank == 0 && !plan.splits_backward();
  if (by_operators && *rc::gen::arbitrary<bool>()) {
    plan.recompute = {plan::RecomputeGranularity::kOperators};
    plan.transformer_engine = false;
  }
  return random;
}

Bytes sum(const program::MemoryByCategory& memory) {
  return std::accumulate(memory.begin(), memory.end(), Bytes{0});
}

/// What a step leaves is the state it began with, all activations are freed, and at its peak the categories
/// and the tensors alive add up to it.
RC_GTEST_PROP(Memory, IsConserved, ()) {
  const Case random = random_case();
  for (const memory::Profile& profile : tests::memory_of(random.model, random.plan)) {
    RC_ASSERT(sum(profile.at_end) == profile.curve.front().end);
    RC_ASSERT(profile.curve.back().end == profile.curve.front().end);
    for (const MemoryCategory category :
         {MemoryCategory::kActivations, MemoryCategory::kRecomputation, MemoryCategory::kLogits}) {
      RC_ASSERT(profile.at_end[static_cast<std::size_t>(category)] == 0);
    }
    RC_ASSERT(sum(profile.at_peak) == profile.peak);
    Bytes alive = 0;
    for (const memory::LiveTensor& tensor : profile.alive_at_peak) alive += tensor.bytes;
    RC_ASSERT(alive == profile.peak);
    Bytes highest = 0;
    for (std::size_t i = 0; i < profile.curve.size(); ++i) {
      highest = std::max(highest, profile.curve[i].peak);
      if (i > 0) RC_ASSERT(profile.curve[i].begin == profile.curve[i - 1].end);
    }
    RC_ASSERT(highest == profile.peak);
  }
}

/// The caching allocator holds at least what is allocated, and as much with a step more.
RC_GTEST_PROP(Memory, IsHeldByTheAllocator, ()) {
  const Case random = random_case();
  for (const program::Program& program : tests::programs_of(random.model, random.plan)) {
    const auto segments = *rc::gen::element(memory::Segments::kFixed, memory::Segments::kExpandable);
    const memory::Reservation held = memory::reserve(program, segments);
    RC_ASSERT(held.peak_reserved >= held.peak_allocated);
    RC_ASSERT(held.peak_allocated >= memory::replay(program).peak);
  }
}

/// With as much memory as the allocator takes if there is any amount, it never gives any back; of a smaller
/// device, expandable segments take no more than there is.
RC_GTEST_PROP(Memory, IsGivenBackWhenTheDeviceIsFull, ()) {
  const Case random = random_case();
  const auto share = *rc::gen::inRange(0, 101);
  for (const program::Program& program : tests::programs_of(random.model, random.plan)) {
    for (const auto segments : {memory::Segments::kFixed, memory::Segments::kExpandable}) {
      const memory::Reservation held = memory::reserve(program, segments);
      const memory::Reservation same = memory::reserve(program, segments, held.peak_reserved);
      RC_ASSERT(same.peak_reserved == held.peak_reserved);
      RC_ASSERT(same.retries == 0);
      const Bytes capacity = held.peak_allocated + (held.peak_reserved - held.peak_allocated) * share / 100;
      const memory::Reservation less = memory::reserve(program, segments, capacity);
      RC_ASSERT(less.peak_reserved >= less.peak_allocated);
      if (segments == memory::Segments::kExpandable) RC_ASSERT(less.peak_reserved <= capacity);
    }
  }
}

/// Shards of all data-parallel ranks are the whole again, but for what rounding adds to each.
RC_GTEST_PROP(Memory, OfShardsAddsUpToTheWhole, ()) {
  Case random = random_case();
  random.plan = tests::split_plan({random.plan.tensor_parallel, 1, 1, 4}, 2);
  random.plan.framework = *rc::gen::element(Framework::kMegatron, Framework::kDeepSpeed);
  random.plan.lora = {};
  const auto state = [&](Sharding sharding) {
    random.plan.sharding = sharding;
    return tests::memory_of(random.model, random.plan).front().at_end;
  };
  const program::MemoryByCategory whole = state(Sharding::kNone);
  const program::MemoryByCategory shard = state(Sharding::kZero3);
  for (const MemoryCategory category :
       {MemoryCategory::kParameters, MemoryCategory::kMainGradients, MemoryCategory::kOptimizerState}) {
    const Bytes all = tests::of(whole, category);
    const Bytes part = 4 * tests::of(shard, category);
    RC_ASSERT(part >= all && part - all <= 4 * 4 * 12);
  }
}

/// The more micro-batches recompute nothing, the more is kept.
RC_GTEST_PROP(Memory, GrowsWithMicroBatchesThatRecomputeNothing, ()) {
  Case random = random_case();
  // Recomputation by operators leaves no micro-batch out.
  if (random.plan.recompute.by_operators()) random.plan.recompute = {};
  random.plan.recompute.partial_layers = 0;
  random.plan.offloaded_layers = 0;
  Bytes before = 0;
  for (const std::int64_t partial : {0, 1, 2, 4, 100}) {
    random.plan.recompute.partial_micro_batches = partial;
    const Bytes kept =
        tests::of(tests::memory_of(random.model, random.plan).front().largest, MemoryCategory::kActivations);
    RC_ASSERT(kept >= before);
    before = kept;
  }
}

/// Recomputing more never keeps more.
RC_GTEST_PROP(Memory, FallsWithRecomputation, ()) {
  Case random = random_case();
  random.plan.recompute = {};
  const auto activations = [&](plan::RecomputeGranularity granularity) {
    random.plan.recompute.granularity = granularity;
    return tests::of(tests::memory_of(random.model, random.plan).front().largest,
                     MemoryCategory::kActivations);
  };
  const Bytes none = activations(plan::RecomputeGranularity::kNone);
  const Bytes selective = activations(plan::RecomputeGranularity::kSelective);
  const Bytes full = activations(plan::RecomputeGranularity::kFull);
  RC_ASSERT(selective <= none && full < none);
}

}  // namespace
}  // namespace trainsim
