// SPDX-License-Identifier: Apache-2.0
#include "sim/search/neighbours.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/spelling.hpp"
#include "sim/search/space.hpp"

namespace trainsim::search {

namespace {

using plan::ParallelPlan;
using plan::Recompute;
using plan::RecomputeGranularity;
using plan::RecomputeMethod;
using plan::ScheduleKind;
using plan::Sharding;

/// Which way a setting moves.
enum class Way { kDown, kUp };
constexpr Way kWays[] = {Way::kDown, Way::kUp};

/// Values beyond `from` in a list, the nearest first.
std::vector<std::int64_t> beyond(std::vector<std::int64_t> values, std::int64_t from, Way way) {
  std::sort(values.begin(), values.end());
  if (way == Way::kDown) std::reverse(values.begin(), values.end());
  std::erase_if(values, [&](std::int64_t value) { return way == Way::kUp ? value <= from : value >= from; });
  return values;
}

const char* flag(bool value) {
  return value ? "true" : "false";
}

/// Names what moved.
class Changes {
 public:
  template <class T>
  void add(const char* name, const T& from, const T& to) {
    if (from == to) return;
    if (!text_.empty()) text_ += ", ";
    text_.append(name).append(" ").append(from).append(" -> ").append(to);
  }
  void add_count(const char* name, std::int64_t from, std::int64_t to) {
    add(name, std::to_string(from), std::to_string(to));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string change_text(const Candidate& from, const Candidate& to) {
  Changes changes;
  changes.add_count("tensor_parallel", from.tensor_parallel, to.tensor_parallel);
  changes.add_count("pipeline_parallel", from.pipeline_parallel, to.pipeline_parallel);
  changes.add_count("context_parallel", from.context_parallel, to.context_parallel);
  changes.add_count("expert_parallel", from.expert_parallel, to.expert_parallel);
  changes.add_count("virtual_pipeline", from.virtual_pipeline, to.virtual_pipeline);
  changes.add_count("data_parallel", from.data_parallel, to.data_parallel);
  changes.add_count("micro_batch_size", from.micro_batch_size, to.micro_batch_size);
  changes.add("schedule", plan::to_string(from.schedule), plan::to_string(to.schedule));
  changes.add("sequence_parallel", std::string(flag(from.sequence_parallel)),
              std::string(flag(to.sequence_parallel)));
  changes.add("recompute", to_string(from.recompute.recompute), to_string(to.recompute.recompute));
  changes.add("sharding", plan::to_string(from.sharding), plan::to_string(to.sharding));
  return changes.take();
}

/// A switch that is no setting of a candidate.
struct Switch {
  const char* name;
  bool ParallelPlan::*value;
  bool (*matters)(const ParallelPlan&);
};

const std::vector<Switch> kSwitches = {
    {"overlap_gradient_reduction", &ParallelPlan::overlap_gradient_reduction,
     [](const ParallelPlan& plan) { return plan.data_context_ranks() > 1; }},
    {"overlap_parameter_gather", &ParallelPlan::overlap_parameter_gather,
     [](const ParallelPlan& plan) {
       return plan.data_context_ranks() > 1 && plan.sharding == Sharding::kZero1;
     }},
    {"overlap_point_to_point", &ParallelPlan::overlap_point_to_point,
     [](const ParallelPlan& plan) { return plan.pipeline_parallel > 1; }},
    {"overlap_tensor_communication", &ParallelPlan::overlap_tensor_communication,
     [](const ParallelPlan& plan) { return plan.tensor_parallel > 1; }},
    {"scatter_gather_transfers", &ParallelPlan::scatter_gather_transfers, [](const ParallelPlan& plan) {
       return plan.tensor_parallel > 1 && plan.pipeline_parallel > 1 && !plan.sequence_parallel;
     }}};

/// Recomputation from the least to the most.
std::vector<Recompute> ladder(const model::ModelSpec& model) {
  Recompute core{RecomputeGranularity::kSelective};
  Recompute small = core;
  small.modules = {true, false, true, true};
  Recompute mlp = core;
  mlp.modules = {true, true, false, false, model.experts.active()};
  return {Recompute{}, core, small, mlp, Recompute{RecomputeGranularity::kFull}};
}

/// Collects neighbours.
class Explorer {
 public:
  explicit Explorer(const Base& base) : base_(base), own_(candidate_of(base.plan)) {}

  Neighbourhood run() {
    for (const Way way : kWays) move_tensor(way);
    for (const Way way : kWays) move_pipeline(way);
    for (const Way way : kWays) move_context(way);
    for (const Way way : kWays) move_experts(way);
    for (const Way way : kWays) move_chunks(way);
    for (const Way way : kWays) move_micro_batch(way);
    move_schedule();
    for (const Way way : kWays) move_recompute(way);
    for (const Way way : kWays) move_sharding(way);
    if (own_.tensor_parallel > 1) {
      Candidate moved = own_;
      moved.sequence_parallel = !own_.sequence_parallel;
      take_first({moved});
    }
    for (const Switch& each : kSwitches) toggle(each);
    return std::move(result_);
  }

 private:
  bool is_legal(const Candidate& candidate) const {
    return plan::check(applied(candidate, base_), base_.model, base_.cluster).empty();
  }

  /// Keeps the first legal one of some plans, in order of their distance.
  void take_first(const std::vector<Candidate>& moved) {
    const auto found =
        std::find_if(moved.begin(), moved.end(), [this](const Candidate& each) { return is_legal(each); });
    if (found == moved.end()) {
      ++result_.illegal;
    } else {
      result_.legal.push_back({change_text(own_, *found), overrides_for(*found, base_)});
    }
  }

  /// The same plan with another number of stages, for each number of chunks that it could have: what it has
  /// first, then fewer.
  std::vector<Candidate> with_stages(Candidate candidate, std::int64_t stages) const {
    candidate.pipeline_parallel = stages;
    std::vector<Candidate> list;
    for (std::int64_t chunks = own_.virtual_pipeline; chunks >= 1; --chunks) {
      if (stages == 1 && chunks > 1) continue;
      candidate.virtual_pipeline = chunks;
      candidate.schedule = chunks > 1                                    ? ScheduleKind::kInterleaved
                           : own_.schedule == ScheduleKind::kInterleaved ? ScheduleKind::kOneFOneB
                                                                         : own_.schedule;
      list.push_back(candidate);
    }
    return list;
  }

  static void append(std::vector<Candidate>& list, const std::vector<Candidate>& more) {
    list.insert(list.end(), more.begin(), more.end());
  }

  void move_tensor(Way way) {
    const std::int64_t gpus = base_.plan.gpus / base_.plan.context_parallel;
    std::vector<Candidate> with_data;
    for (const std::int64_t tensor : beyond(divisors(gpus), own_.tensor_parallel, way)) {
      if (gpus % (tensor * own_.pipeline_parallel) != 0) continue;
      Candidate moved = own_;
      moved.tensor_parallel = tensor;
      moved.data_parallel = gpus / (tensor * own_.pipeline_parallel);
      with_data.push_back(moved);
    }
    take_first(with_data);
    const std::int64_t grid = own_.tensor_parallel * own_.pipeline_parallel;
    std::vector<Candidate> with_pipeline;
    for (const std::int64_t tensor : beyond(divisors(grid), own_.tensor_parallel, way)) {
      Candidate moved = own_;
      moved.tensor_parallel = tensor;
      append(with_pipeline, with_stages(moved, grid / tensor));
    }
    take_first(with_pipeline);
  }

  void move_pipeline(Way way) {
    const std::int64_t rest = base_.plan.gpus / (own_.tensor_parallel * base_.plan.context_parallel);
    std::vector<Candidate> list;
    for (const std::int64_t stages : beyond(divisors(rest), own_.pipeline_parallel, way)) {
      Candidate moved = own_;
      moved.data_parallel = rest / stages;
      append(list, with_stages(moved, stages));
    }
    take_first(list);
  }

  /// Where a sequence is shared already: by more or fewer ranks, with fewer or more replicas.
  void move_context(Way way) {
    if (own_.context_parallel == 1) return;
    const std::int64_t rest = own_.context_parallel * own_.data_parallel;
    std::vector<Candidate> list;
    for (const std::int64_t context : beyond(divisors(rest), own_.context_parallel, way)) {
      Candidate moved = own_;
      moved.context_parallel = context;
      moved.data_parallel = rest / context;
      list.push_back(moved);
    }
    if (!list.empty()) take_first(list);
  }

  /// Of a model with experts: over more or fewer ranks of a stage.
  void move_experts(Way way) {
    if (!base_.model.experts.active()) return;
    std::vector<Candidate> list;
    for (const std::int64_t degree : beyond(divisors(base_.model.experts.count), own_.expert_parallel, way)) {
      Candidate moved = own_;
      moved.expert_parallel = degree;
      list.push_back(moved);
    }
    if (!list.empty()) take_first(list);
  }

  void move_chunks(Way way) {
    if (own_.pipeline_parallel == 1) return;
    std::vector<Candidate> list;
    const std::vector<std::int64_t> chunks = even_chunks(base_.model.num_layers, own_.pipeline_parallel);
    for (const std::int64_t count : beyond(chunks, own_.virtual_pipeline, way)) {
      Candidate moved = own_;
      moved.virtual_pipeline = count;
      moved.schedule = count > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
      list.push_back(moved);
    }
    take_first(list);
  }

  void move_micro_batch(Way way) {
    const std::int64_t share = base_.plan.global_batch_size / own_.data_parallel;
    std::vector<Candidate> list;
    for (const std::int64_t size : beyond(divisors(share), own_.micro_batch_size, way)) {
      Candidate moved = own_;
      moved.micro_batch_size = size;
      list.push_back(moved);
    }
    take_first(list);
  }

  void move_schedule() {
    if (own_.pipeline_parallel == 1 || own_.virtual_pipeline > 1) return;
    Candidate moved = own_;
    moved.schedule =
        own_.schedule == ScheduleKind::kOneFOneB ? ScheduleKind::kGpipe : ScheduleKind::kOneFOneB;
    take_first({moved});
  }

  void move_recompute(Way way) {
    const Recompute& recompute = own_.recompute.recompute;
    Candidate moved = own_;
    const bool block =
        recompute.granularity == RecomputeGranularity::kFull && recompute.method == RecomputeMethod::kBlock;
    if (block) {
      moved.recompute.recompute.layers += way == Way::kUp ? 1 : -1;
      if (moved.recompute.recompute.layers == 0) moved.recompute.recompute = {};
      take_first({moved});
      return;
    }
    const std::vector<Recompute> steps = ladder(base_.model);
    const auto at = std::find_if(steps.begin(), steps.end(), [&](const Recompute& step) {
      return to_string(step) == to_string(recompute);
    });
    // Other sets of modules, and groups of layers, have no place between these.
    const auto place = at != steps.end()                                      ? at - steps.begin()
                       : recompute.granularity == RecomputeGranularity::kFull ? std::ptrdiff_t{4}
                                                                              : std::ptrdiff_t{2};
    const std::ptrdiff_t next = place + (way == Way::kUp ? 1 : -1);
    if (next < 0 || next >= static_cast<std::ptrdiff_t>(steps.size())) return;
    moved.recompute.recompute = steps[static_cast<std::size_t>(next)];
    take_first({moved});
  }

  void move_sharding(Way way) {
    const int own = static_cast<int>(own_.sharding);
    std::vector<Candidate> list;
    const int step = way == Way::kUp ? 1 : -1;
    for (int stage = own + step; stage >= 0 && stage <= static_cast<int>(Sharding::kZero3); stage += step) {
      Candidate moved = own_;
      moved.sharding = static_cast<Sharding>(stage);
      list.push_back(moved);
    }
    if (list.empty() || own_.data_parallel * base_.plan.context_parallel == 1) return;
    take_first(list);
  }

  void toggle(const Switch& each) {
    if (!each.matters(base_.plan)) return;
    ParallelPlan plan = base_.plan;
    plan.*each.value = !(plan.*each.value);
    if (!plan::check(plan, base_.model, base_.cluster).empty()) {
      ++result_.illegal;
      return;
    }
    Changes changes;
    changes.add(each.name, std::string(flag(base_.plan.*each.value)), std::string(flag(plan.*each.value)));
    result_.legal.push_back(
        {changes.take(), {std::string("plan.") + each.name + "=" + flag(plan.*each.value)}});
  }

  const Base& base_;
  Candidate own_;
  Neighbourhood result_;
};

}  // namespace

Neighbourhood neighbours_of(const Base& base) {
  return Explorer(base).run();
}

}  // namespace trainsim::search
