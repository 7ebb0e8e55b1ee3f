// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/plan_search.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <spdlog/spdlog.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/interrupt.hpp"
#include "sim/cli/plan_base.hpp"
#include "sim/cli/plan_trial.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/report/writers.hpp"
#include "sim/search/frontier.hpp"
#include "sim/search/space.hpp"

namespace trainsim::cli {

namespace {

using config::Experiment;
using plan::RecomputeGranularity;
using report::LeftOut;
using report::Objective;
using report::PlanResult;
using search::Candidate;
using search::Stage;
using search::Value;

/// Candidates that are looked at more closely at a time. Fixed, so that what is looked at does not depend on
/// the number of workers.
constexpr std::size_t kRound = 16;
/// Share of the peak of a short step, with the least or the most recomputation, that any recomputation needs.
constexpr double kLeastPeak = 0.95;
/// Share of the progress bar for the first pass over all candidates.
constexpr double kFirstPass = 0.5;

/// Why candidates are out.
enum class Fate { kOpen, kDoesNotFit, kBorderline, kLimit, kFailed };

/// A candidate on its way.
struct Trial {
  /// Which of the bases it changes: one for each number of GPUs.
  std::size_t base = 0;
  Candidate candidate;
  Fate fate = Fate::kOpen;
  /// With the fates that have one.
  std::string reason;
  PlanResult result;
};

/// Candidates that differ only in micro-batch and recomputation: first and last index.
struct Block {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Thrown out of the pool when Ctrl-C was pressed.
struct Interrupted {};

bool same_block(const Trial& a, const Trial& b) {
  const auto key = [](const Trial& t) {
    const Candidate& c = t.candidate;
    return std::tuple(t.base, c.tensor_parallel, c.pipeline_parallel, c.virtual_pipeline, c.schedule,
                      c.sequence_parallel, c.sharding);
  };
  return key(a) == key(b);
}

/// The name in a limit such as "peak_memory_bytes<=6e10".
std::string limited_name(const std::string& limit) {
  return limit.substr(0, limit.find_first_of("<>=! "));
}

/// Names of results that memory alone decides, so that they are known before the simulation.
bool is_about_memory(const std::string& name) {
  const std::set<std::string> names = {"peak_memory_bytes", "peak_reserved_bytes", "memory_headroom_bytes"};
  return names.count(name) > 0;
}

/// Whether a limit keeps something small that only grows as more is known of a plan.
bool is_upper_limit(const std::string& limit) {
  const std::string name = limited_name(limit);
  return (name == "step_time_s" || name == "peak_memory_bytes") && limit.find('<') != std::string::npos;
}

/// Throws InputError if a limit can't be read.
void check_limit(const std::string& limit) {
  try {
    report::check_assertion_early(limit);
  } catch (const InputError& error) {
    std::string text = error.what();
    const std::string option = "--assert";
    if (text.starts_with(option)) text.replace(0, option.size(), "--limit");
    throw InputError(text);
  }
}

std::vector<std::int64_t> gpu_counts(const SearchRequest& request, const PlanBase& plan_base) {
  std::vector<std::int64_t> counts = request.gpus;
  const std::int64_t own = plan_base.base.plan.gpus;
  if (counts.empty()) {
    counts.push_back(own);
    for (std::int64_t half = own; request.objective == Objective::kGpus && half % 2 == 0;) {
      half /= 2;
      counts.push_back(half);
    }
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

/// One search.
class Search {
 public:
  Search(const SearchRequest& request, const SearchProgress& progress)
      : request_(request),
        progress_(progress),
        own_(read_plan_base(request.subject, "search")),
        frontier_(request.top) {
    for (const std::string& limit : request.limits) check_limit(limit);
    enumerate();
  }

  report::SearchReport run() {
    spdlog::debug("{} legal plans of {}", trials_.size(), report_.considered);
    try {
      simulate_own();
      pass_over_all();
      while (look_closer()) {
      }
    } catch (const Interrupted&) {
      report_.complete = false;
    }
    finish();
    return std::move(report_);
  }

 private:
  // --- enumeration ---

  void enumerate() {
    search::Space space;
    for (const std::string& text : request_.vary) search::restrict_space(space, text);
    std::map<std::string, LeftOut> illegal;
    for (const std::int64_t gpus : gpu_counts(request_, own_)) {
      bases_.push_back(own_.base);
      bases_.back().plan.gpus = gpus;
      const search::Enumeration found = search::enumerate(space, bases_.back());
      report_.considered += found.considered;
      for (const Candidate& candidate : found.legal) add(candidate);
      for (const search::Illegal& each : found.illegal) {
        LeftOut& rule = illegal[each.field];
        if (rule.count == 0) rule.reason = each.field + ": " + each.example;
        rule.count += each.count;
      }
      if (request_.vary.empty() && gpus == own_.base.plan.gpus) add_own();
    }
    report_.legal = static_cast<std::int64_t>(trials_.size());
    report_.illegal.reserve(illegal.size());
    for (auto& [key, rule] : illegal) report_.illegal.push_back(std::move(rule));
    std::stable_sort(report_.illegal.begin(), report_.illegal.end(),
                     [](const LeftOut& a, const LeftOut& b) { return a.count > b.count; });
  }

  void add(const Candidate& candidate) {
    Trial trial;
    trial.base = bases_.size() - 1;
    trial.candidate = candidate;
    trials_.push_back(std::move(trial));
  }

  /// What the configuration has and the usual values do not, such as other groups of layers.
  void add_own() {
    const bool listed = std::any_of(trials_.begin(), trials_.end(),
                                    [this](const Trial& trial) { return overrides_of(trial).empty(); });
    if (listed) return;
    add(search::candidate_of(own_.base.plan));
    ++report_.considered;
  }

  /// Overrides of the configuration that make a candidate.
  Overrides overrides_of(const Trial& trial) const {
    const search::Base& base = bases_[trial.base];
    Overrides list;
    if (base.plan.gpus != own_.base.plan.gpus) list.push_back(search::assignment("gpus", base.plan.gpus));
    return joined(std::move(list), search::overrides_for(trial.candidate, base));
  }

  Experiment experiment_of(const Trial& trial) const {
    Experiment experiment =
        config::load(own_.subject.name, joined(own_.subject.overrides, overrides_of(trial)));
    experiment.jitter = {};
    return experiment;
  }

  // --- values ---

  Value value_of(const Trial& trial, Seconds step_time) const {
    const auto gpus = static_cast<double>(bases_[trial.base].plan.gpus);
    switch (request_.objective) {
      case Objective::kStepTime:
        return {0, step_time};
      case Objective::kCost:
        return {0, gpus * step_time};
      case Objective::kGpus:
        break;
    }
    return {gpus, step_time};
  }

  Bytes available(const Trial& trial) const {
    const search::Base& base = bases_[trial.base];
    return base.cluster.gpu.memory - base.plan.memory_reserve;
  }

  void drop(std::size_t index, Fate fate, const std::string& reason = "") {
    trials_[index].fate = fate;
    trials_[index].reason = reason;
    frontier_.drop(index);
  }

  /// Notes a lower bound of a candidate's step time, unless that or the least that it needs of memory breaks
  /// a limit already.
  void set_bound(std::size_t index, Stage stage, Seconds step_time, Bytes peak) {
    report::Summary summary;
    summary.plan.global_batch_size = 1;
    summary.step_time = step_time;
    summary.peak_memory = peak;
    for (const std::string& limit : request_.limits) {
      if (is_upper_limit(limit) && !report::check_assertion(summary, limit).holds) {
        drop(index, Fate::kLimit, limit);
        return;
      }
    }
    frontier_.set(index, stage, value_of(trials_[index], step_time));
  }

  // --- work ---

  /// Runs tasks in worker processes, and passes on what they send.
  void run(std::size_t tasks, const std::function<std::string(std::size_t)>& work,
           const std::function<void(std::size_t, const WorkResult&)>& receive) {
    run_forked(tasks, request_.workers, work, [&](std::size_t task, const WorkResult& result) {
      if (InterruptGuard::interrupted()) throw Interrupted{};
      receive(task, result);
    });
  }

  void simulate_own() {
    const auto work = [this](std::size_t /*task*/) { return packed(try_in_full(own_.experiment)); };
    run(1, work, [this](std::size_t /*task*/, const WorkResult& result) {
      if (!result.done) throw std::runtime_error("the configuration's own plan failed: " + result.text);
      report_.own = unpacked(result.text);
      report_.own->plan = own_.base.plan;
    });
  }

  std::vector<Block> blocks() const {
    std::vector<Block> list;
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      if (i > 0 && same_block(trials_[i - 1], trials_[i])) {
        list.back().end = i + 1;
      } else {
        list.push_back({i, i + 1});
      }
    }
    return list;
  }

  /// A first lower bound for every candidate of a block: its step without recomputation. What does not fit
  /// whatever is recomputed gets none, nor do larger micro-batches.
  std::string bound_block(const Block& block) const {
    std::map<std::int64_t, std::string> lines;
    std::set<std::int64_t> sizes;
    for (std::size_t i = block.begin; i < block.end; ++i) sizes.insert(trials_[i].candidate.micro_batch_size);
    std::ostringstream text;
    text.precision(17);
    for (const std::int64_t size : sizes) {
      Trial trial = trials_[block.begin];
      trial.candidate.micro_batch_size = size;
      trial.candidate.recompute = {};
      Experiment experiment = experiment_of(trial);
      const ShortTrial none = try_short_step(experiment);
      if (none.peak > available(trial)) {
        experiment.plan.recompute.granularity = RecomputeGranularity::kFull;
        const Bytes least = std::min(none.peak, try_short_step(experiment).peak);
        if (kLeastPeak * static_cast<double>(least) > static_cast<double>(available(trial))) break;
      }
      text << size << " " << none.bound << "\n";
    }
    return text.str();
  }

  void pass_over_all() {
    const std::vector<Block> list = blocks();
    std::size_t done = 0;
    run(
        list.size(), [&](std::size_t task) { return bound_block(list[task]); },
        [&](std::size_t task, const WorkResult& result) {
          take_bounds(list[task], result);
          done += list[task].end - list[task].begin;
          progress_(kFirstPass * static_cast<double>(done) / static_cast<double>(trials_.size()),
                    std::to_string(done) + " of " + std::to_string(trials_.size()) + " plans bounded");
        });
  }

  void take_bounds(const Block& block, const WorkResult& result) {
    std::map<std::int64_t, Seconds> bounds;
    std::istringstream text(result.text);
    std::int64_t size = 0;
    Seconds bound = 0;
    while (result.done && text >> size >> bound) bounds[size] = bound;
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const auto found = bounds.find(trials_[i].candidate.micro_batch_size);
      if (!result.done) {
        drop(i, Fate::kFailed, result.text);
      } else if (found == bounds.end()) {
        drop(i, Fate::kDoesNotFit);
      } else {
        set_bound(i, Stage::kGuessed, found->second, 0);
      }
    }
  }

  /// Takes the most promising candidates one step further; false when the best are known.
  bool look_closer() {
    const std::vector<std::size_t> chosen = frontier_.next(kRound);
    if (chosen.empty()) return false;
    run(
        chosen.size(), [&](std::size_t task) { return advance(chosen[task]); },
        [&](std::size_t task, const WorkResult& result) { receive(chosen[task], result); });
    const std::size_t confirmed = frontier_.count(Stage::kConfirmed);
    const auto known = static_cast<double>(confirmed);
    const std::size_t open = frontier_.open();
    const std::string done =
        std::to_string(open) + " plans left, " + std::to_string(confirmed) + " simulated";
    spdlog::debug(done);
    progress_(kFirstPass + (1 - kFirstPass) * known / (known + static_cast<double>(open)), done);
    return true;
  }

  /// Body of a worker: the next step of a candidate.
  std::string advance(std::size_t index) const {
    const Trial& trial = trials_[index];
    Experiment experiment = experiment_of(trial);
    std::ostringstream text;
    text.precision(17);
    switch (frontier_.stage(index)) {
      case Stage::kGuessed: {
        const ShortTrial tried = try_short_step(experiment);
        text << tried.bound << " " << tried.peak;
        break;
      }
      case Stage::kBounded: {
        std::int64_t layers = 0;
        if (trial.candidate.recompute.fewest_layers) layers = recompute_fewest_layers(experiment);
        const RankedTrial tried = try_without_contention(experiment);
        text << static_cast<int>(tried.verdict) << " " << tried.peak << " " << tried.reserved << " "
             << tried.step_time << " " << layers;
        break;
      }
      default: {
        const FullTrial tried = try_in_full(experiment, request_.limits);
        text << packed(tried.result) << "\n" << tried.broken_limit;
      }
    }
    return text.str();
  }

  /// Recomputes as few layers as make the plan fit, or all if none do; returns how many.
  std::int64_t recompute_fewest_layers(Experiment& experiment) const {
    const report::Verdict wanted =
        request_.borderline ? report::Verdict::kBorderline : report::Verdict::kFits;
    const auto fewest = fewest_layers(experiment, wanted);
    if (!fewest) return 0;
    experiment.plan.recompute = *fewest;
    return fewest->layers;
  }

  void receive(std::size_t index, const WorkResult& result) {
    Trial& trial = trials_[index];
    std::istringstream text(result.text);
    if (!result.done) {
      drop(index, Fate::kFailed, result.text);
      return;
    }
    switch (frontier_.stage(index)) {
      case Stage::kGuessed: {
        ShortTrial tried;
        text >> tried.bound >> tried.peak;
        // With fewer layers recomputed than none there is nothing to be seen yet.
        if (tried.peak > available(trial) && !trial.candidate.recompute.fewest_layers) {
          drop(index, Fate::kDoesNotFit);
        } else {
          set_bound(index, Stage::kBounded, tried.bound,
                    trial.candidate.recompute.fewest_layers ? 0 : tried.peak);
        }
        break;
      }
      case Stage::kBounded:
        receive_ranked(index, text);
        break;
      default:
        receive_confirmed(index, result.text);
    }
  }

  void receive_ranked(std::size_t index, std::istringstream& text) {
    Trial& trial = trials_[index];
    RankedTrial tried;
    int verdict = 0;
    std::int64_t layers = 0;
    text >> verdict >> tried.peak >> tried.reserved >> tried.step_time >> layers;
    tried.verdict = static_cast<report::Verdict>(verdict);
    ++report_.ranked;
    if (trial.candidate.recompute.fewest_layers) {
      if (layers == 0) {
        drop(index, Fate::kDoesNotFit);
        return;
      }
      trial.candidate.recompute = {{RecomputeGranularity::kFull, plan::RecomputeMethod::kBlock, layers},
                                   false};
    }
    if (tried.verdict == report::Verdict::kDoesNotFit) {
      drop(index, Fate::kDoesNotFit);
    } else if (tried.verdict == report::Verdict::kBorderline && !request_.borderline) {
      drop(index, Fate::kBorderline);
    } else if (const std::string broken = broken_memory_limit(trial, tried); !broken.empty()) {
      drop(index, Fate::kLimit, broken);
    } else {
      set_bound(index, Stage::kRanked, tried.step_time, tried.peak);
    }
  }

  /// The limit on memory that a plan breaks, if any.
  std::string broken_memory_limit(const Trial& trial, const RankedTrial& tried) const {
    report::Summary summary;
    summary.plan.global_batch_size = 1;
    summary.peak_memory = tried.peak;
    summary.peak_reserved = tried.reserved;
    summary.memory_headroom = available(trial) - tried.peak;
    for (const std::string& limit : request_.limits) {
      if (is_about_memory(limited_name(limit)) && !report::check_assertion(summary, limit).holds)
        return limit;
    }
    return "";
  }

  void receive_confirmed(std::size_t index, const std::string& text) {
    Trial& trial = trials_[index];
    ++report_.confirmed;
    const std::size_t end = text.find('\n');
    trial.result = unpacked(text.substr(0, end));
    trial.result.plan = search::applied(trial.candidate, bases_[trial.base].plan);
    trial.result.overrides = overrides_of(trial);
    if (const std::string broken = text.substr(end + 1); !broken.empty()) {
      drop(index, Fate::kLimit, broken);
    } else {
      frontier_.set(index, Stage::kConfirmed, value_of(trial, trial.result.step_time));
    }
  }

  // --- report ---

  void finish() {
    report_.name = own_.experiment.name;
    report_.model = own_.base.model.name;
    report_.cluster = own_.base.cluster.name;
    report_.global_batch_size = own_.base.plan.global_batch_size;
    report_.objective = request_.objective;
    report_.price = request_.price;
    report_.limits = request_.limits;
    choose_best();
    count_rejected();
    compare();
  }

  void choose_best() {
    std::vector<std::size_t> best;
    for (std::size_t i = 0; i < trials_.size() && report_.confirmed > 0; ++i) {
      if (frontier_.stage(i) == Stage::kConfirmed) best.push_back(i);
    }
    std::stable_sort(best.begin(), best.end(), [this](std::size_t a, std::size_t b) {
      const Value va = frontier_.value(a);
      const Value vb = frontier_.value(b);
      if (va != vb) return va < vb;
      const PlanResult& ra = trials_[a].result;
      const PlanResult& rb = trials_[b].result;
      if (ra.peak_memory != rb.peak_memory) return ra.peak_memory < rb.peak_memory;
      return search::simpler(ra.plan, rb.plan);
    });
    if (best.size() > request_.top) best.resize(request_.top);
    report_.plans.reserve(best.size());
    for (const std::size_t index : best) report_.plans.push_back(trials_[index].result);
  }

  void count_rejected() {
    std::map<std::string, std::int64_t> limits;
    std::map<std::string, std::int64_t> failures;
    std::array<std::int64_t, 5> fates{};
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      const Trial& trial = trials_[i];
      ++fates[static_cast<std::size_t>(trial.fate)];
      if (trial.fate == Fate::kLimit) ++limits[trial.reason];
      if (trial.fate == Fate::kFailed) ++failures[trial.reason];
    }
    const auto bounded =
        static_cast<std::int64_t>(frontier_.count(Stage::kGuessed) + frontier_.count(Stage::kBounded));
    const auto ranked = static_cast<std::int64_t>(frontier_.count(Stage::kRanked));
    const auto reject = [this](std::int64_t count, const std::string& reason) {
      if (count > 0) report_.rejected.push_back({reason, count});
    };
    const bool complete = report_.complete;
    reject(fates[static_cast<std::size_t>(Fate::kDoesNotFit)], "do not fit into memory");
    reject(fates[static_cast<std::size_t>(Fate::kBorderline)],
           "fit, but by less than memory is known to (--borderline takes them)");
    for (const auto& [limit, count] : limits) reject(count, "break the limit " + limit);
    reject(bounded,
           complete ? "are slower even by a lower bound of their time" : "were not looked at closely");
    reject(ranked, complete ? "are slower even without contention between transfers" : "were not simulated");
    const std::size_t slower = frontier_.count(Stage::kConfirmed) - report_.plans.size();
    reject(static_cast<std::int64_t>(slower), "were simulated and are slower");
    for (const auto& [reason, count] : failures) reject(count, "failed: " + reason);
  }

  double objective_of(const PlanResult& result) const {
    const bool by_time = request_.objective == Objective::kStepTime;
    return by_time ? result.step_time : report::gpu_hours(result);
  }

  void compare() {
    if (report_.plans.empty()) return;
    const PlanResult& best = report_.plans.front();
    for (std::size_t i = 1; i < report_.plans.size(); ++i) compare_with(best, report_.plans[i]);
    if (report_.own) compare_with(best, *report_.own);
  }

  void compare_with(const PlanResult& best, PlanResult& other) const {
    other.relative = objective_of(other) / objective_of(best);
    other.why = report::explain_difference(best, other);
  }

  const SearchRequest& request_;
  const SearchProgress& progress_;
  PlanBase own_;
  std::vector<search::Base> bases_;
  std::vector<Trial> trials_;
  search::Frontier frontier_;
  report::SearchReport report_;
};

}  // namespace

report::SearchReport search_plans(const SearchRequest& request, const SearchProgress& progress) {
  return Search(request, progress).run();
}

}  // namespace trainsim::cli
