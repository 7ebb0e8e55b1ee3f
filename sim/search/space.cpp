// SPDX-License-Identifier: Apache-2.0
#include "sim/search/space.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/spelling.hpp"

namespace trainsim::search {

namespace {

using plan::Recompute;
using plan::RecomputeGranularity;
using plan::ScheduleKind;
using plan::Sharding;

/// Largest micro-batch that is tried on its own account.
constexpr std::int64_t kMostMicroBatch = 64;

std::vector<std::int64_t> divisors_up_to(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> list = divisors(number);
  std::erase_if(list, [most](std::int64_t value) { return value > most; });
  return list;
}

std::vector<RecomputeChoice> usual_recomputation(const model::ModelSpec& model) {
  Recompute core{RecomputeGranularity::kSelective};
  Recompute small = core;
  small.modules = {true, false, true, true};
  Recompute mlp = core;
  mlp.modules = {true, true, false, false, model.experts.active()};
  return {{Recompute{}, false}, {core, false},       {small, false},
          {mlp, false},         {Recompute{}, true}, {Recompute{RecomputeGranularity::kFull}, false}};
}

/// Runs through the combinations of a space.
class Enumerator {
 public:
  Enumerator(const Space& space, const Base& base) : space_(space), base_(base) {}

  Enumeration run() {
    const plan::ParallelPlan& plan = base_.plan;
    const std::vector<std::int64_t> degrees = divisors_up_to(plan.gpus, base_.model.num_attention_heads);
    const std::vector<std::int64_t> own_context = {plan.context_parallel};
    for (const std::int64_t tensor : given_or(space_.tensor_parallel, degrees)) {
      at_.tensor_parallel = tensor;
      for (const std::int64_t context : given_or(space_.context_parallel, own_context)) {
        at_.context_parallel = context;
        for_each_pipeline(std::max<std::int64_t>(1, plan.gpus / (tensor * context)));
      }
    }
    std::stable_sort(result_.illegal.begin(), result_.illegal.end(),
                     [](const Illegal& a, const Illegal& b) { return a.count > b.count; });
    return std::move(result_);
  }

 private:
  template <class T>
  static const std::vector<T>& given_or(const std::vector<T>& given, const std::vector<T>& usual) {
    return given.empty() ? usual : given;
  }

  /// `rest` GPUs are left for stages and replicas.
  void for_each_pipeline(std::int64_t rest) {
    const std::vector<std::int64_t> stages = divisors_up_to(rest, base_.model.num_layers);
    for (const std::int64_t pipeline : given_or(space_.pipeline_parallel, stages)) {
      at_.pipeline_parallel = pipeline;
      at_.data_parallel = std::max<std::int64_t>(1, rest / pipeline);
      for_each_spread();
    }
  }

  void for_each_spread() {
    const bool whole = base_.plan.expert_tensor_parallel == 1;
    const std::int64_t ranks = at_.data_parallel * at_.context_parallel * (whole ? at_.tensor_parallel : 1);
    const model::Experts& experts = base_.model.experts;
    const std::vector<std::int64_t> usual = divisors(experts.active() ? std::gcd(experts.count, ranks) : 1);
    for (const std::int64_t degree : given_or(space_.expert_parallel, usual)) {
      at_.expert_parallel = degree;
      for_each_schedule();
    }
  }

  void for_each_schedule() {
    const std::vector<std::int64_t> chunks = even_chunks(base_.model.num_layers, at_.pipeline_parallel);
    for (const std::int64_t chunk : given_or(space_.virtual_pipeline, chunks)) {
      at_.virtual_pipeline = chunk;
      std::vector<ScheduleKind> suitable = {ScheduleKind::kOneFOneB};
      if (chunk > 1) suitable = {ScheduleKind::kInterleaved};
      if (chunk == 1 && at_.pipeline_parallel > 1) {
        suitable.push_back(ScheduleKind::kGpipe);
        // Megatron-LM has no zero-bubble schedules, so they must be named.
        if (!space_.schedule.empty())
          suitable.insert(suitable.end(), {ScheduleKind::kZeroBubbleH1, ScheduleKind::kZeroBubbleH2});
      }
      for (const ScheduleKind schedule : suitable) {
        // On one stage all are the same.
        if (at_.pipeline_parallel > 1 && !is_asked_for(schedule)) continue;
        at_.schedule = schedule;
        for_each_setting();
      }
    }
  }

  bool is_asked_for(ScheduleKind schedule) const {
    const std::vector<ScheduleKind>& given = space_.schedule;
    return given.empty() || std::find(given.begin(), given.end(), schedule) != given.end();
  }

  void for_each_setting() {
    const bool open = base_.is_open("plan.sequence_parallel") && at_.tensor_parallel > 1;
    const std::vector<bool> usual_sequence = {open || base_.plan.sequence_parallel};
    const std::vector<RecomputeChoice> usual = usual_recomputation(base_.model);
    std::vector<Sharding> shardings = {Sharding::kNone, Sharding::kZero1};
    // Megatron-LM gathers no parameters in a pipeline, so that must be named.
    if (at_.pipeline_parallel == 1 || base_.plan.framework == plan::Framework::kFsdp)
      shardings.insert(shardings.end(), {Sharding::kZero2, Sharding::kZero3});
    for (const bool sequence : given_or(space_.sequence_parallel, usual_sequence)) {
      at_.sequence_parallel = sequence;
      for (const Sharding sharding : given_or(space_.sharding, shardings)) {
        at_.sharding = sharding;
        for (const RecomputeChoice& recompute : given_or(space_.recompute, usual)) {
          at_.recompute = recompute;
          for_each_micro_batch();
        }
      }
    }
  }

  void for_each_micro_batch() {
    const std::int64_t share = base_.plan.global_batch_size / at_.data_parallel;
    const std::vector<std::int64_t> usual =
        share < 1 ? std::vector<std::int64_t>{1} : divisors_up_to(share, kMostMicroBatch);
    for (const std::int64_t size : given_or(space_.micro_batch_size, usual)) {
      at_.micro_batch_size = size;
      consider();
    }
  }

  void consider() {
    ++result_.considered;
    const Problems problems = plan::check(applied(at_, base_), base_.model, base_.cluster);
    if (problems.empty()) {
      result_.legal.push_back(at_);
      return;
    }
    const Problem& first = problems.front();
    const auto found = std::find_if(result_.illegal.begin(), result_.illegal.end(),
                                    [&](const Illegal& each) { return each.field == first.field; });
    if (found != result_.illegal.end()) {
      ++found->count;
    } else {
      result_.illegal.push_back({first.field, 1, first.message});
    }
  }

  const Space& space_;
  const Base& base_;
  Candidate at_;
  Enumeration result_;
};

}  // namespace

std::vector<std::int64_t> even_chunks(std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> list = {1};
  for (std::int64_t chunks = 2; stages > 1 && stages * chunks <= layers; ++chunks) {
    if (layers % (stages * chunks) == 0 || (layers + 2) % (stages * chunks) == 0) list.push_back(chunks);
  }
  return list;
}

Enumeration enumerate(const Space& space, const Base& base) {
  return Enumerator(space, base).run();
}

}  // namespace trainsim::search
