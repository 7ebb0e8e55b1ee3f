// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/plan_search.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <spdlog/spdlog.h>

#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/candidate_pool.hpp"
#include "sim/cli/interruption.hpp"
#include "sim/cli/plan_base.hpp"
#include "sim/cli/plan_trial.hpp"
#include "sim/cli/search_limits.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/search/frontier.hpp"
#include "sim/search/space.hpp"

namespace trainsim::cli {

namespace {

using config::Experiment;
using plan::RecomputeGranularity;
using report::Objective;
using report::PlanResult;
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

/// What is known of a plan.
struct Trial {
  Fate fate = Fate::kOpen;
  /// With the fates that have one.
  std::string reason;
  PlanResult result;
};

/// Dollars per GPU-hour of the configuration's run, if it says them.
std::optional<double> own_price(const Subject& subject) {
  try {
    const std::optional<training::TrainingSpec> run = config::load(subject.name, subject.overrides).run;
    if (run && run->price && run->price->currency == "USD") return run->price->per_gpu_hour;
  } catch (const InputError&) {
    // A search does not need a run that is legal.
  }
  return std::nullopt;
}

/// Thrown out of the pool when Ctrl-C was pressed.
struct Interrupted {};

std::vector<std::int64_t> gpu_counts(const SearchRequest& request, std::int64_t own) {
  std::vector<std::int64_t> counts = request.gpus;
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

search::Space space_of(const SearchRequest& request) {
  search::Space space;
  for (const std::string& text : request.vary) search::restrict_space(space, text);
  return space;
}

CandidatePool pool_of(const SearchRequest& request, report::SearchReport& report) {
  PlanBase own = read_plan_base(request.subject, "search");
  const std::vector<std::int64_t> gpus = gpu_counts(request, own.base.plan.gpus);
  return {std::move(own), space_of(request), gpus, request.vary.empty(), report};
}

/// One search.
class Search {
 public:
  Search(const SearchRequest& request, const SearchProgress& progress)
      : request_(request),
        progress_(progress),
        limits_(request.limits),
        pool_(pool_of(request, report_)),
        trials_(pool_.plans().size()),
        frontier_(request.top) {}

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
  Value value_of(std::size_t index, Seconds step_time) const {
    const auto gpus = static_cast<double>(pool_.gpus(pool_.plans()[index]));
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

  void drop(std::size_t index, Fate fate, const std::string& reason = "") {
    trials_[index].fate = fate;
    trials_[index].reason = reason;
    frontier_.drop(index);
  }

  /// Notes a lower bound of a candidate's step time, unless that or the least that it needs of memory breaks
  /// a limit already.
  void set_bound(std::size_t index, Stage stage, Seconds step_time, Bytes peak) {
    if (const std::string broken = limits_.broken_by_bounds(step_time, peak); !broken.empty()) {
      drop(index, Fate::kLimit, broken);
      return;
    }
    frontier_.set(index, stage, value_of(index, step_time));
  }

  // --- work ---

  /// Runs tasks in worker processes, and passes on what they send.
  void run(std::size_t tasks, const std::function<std::string(std::size_t)>& work,
           const std::function<void(std::size_t, const WorkResult&)>& receive) {
    run_forked(tasks, request_.workers, work, [&](std::size_t task, const WorkResult& result) {
      if (Interruption::signal() != 0) throw Interrupted{};
      receive(task, result);
    });
  }

  void simulate_own() {
    const auto work = [this](std::size_t /*task*/) {
      const FullTrial tried = try_in_full(pool_.own().experiment, limits_.texts());
      return packed(tried.result) + "\n" + tried.broken_limit;
    };
    run(1, work, [this](std::size_t /*task*/, const WorkResult& result) {
      if (!result.done) throw std::runtime_error("the configuration's own plan failed: " + result.text);
      const std::size_t end = result.text.find('\n');
      report_.own = unpacked(result.text.substr(0, end));
      report_.own_keeps_limits = end + 1 == result.text.size();
      report_.own->plan = pool_.own().base.plan;
    });
  }

  /// A first lower bound for every candidate of a block: its step without recomputation. What does not fit
  /// whatever is recomputed gets none, nor do larger micro-batches.
  std::string bound_block(const PlanBlock& block) const {
    std::set<std::int64_t> sizes;
    for (std::size_t i = block.begin; i < block.end; ++i)
      sizes.insert(pool_.plans()[i].candidate.micro_batch_size);
    std::ostringstream text;
    text.precision(17);
    for (const std::int64_t size : sizes) {
      PooledPlan plan = pool_.plans()[block.begin];
      plan.candidate.micro_batch_size = size;
      plan.candidate.recompute = {};
      Experiment experiment = pool_.experiment(plan);
      const ShortTrial none = try_short_step(experiment);
      if (none.peak > pool_.available(plan)) {
        experiment.plan.recompute.granularity = RecomputeGranularity::kFull;
        const Bytes least = std::min(none.peak, try_short_step(experiment).peak);
        if (kLeastPeak * static_cast<double>(least) > static_cast<double>(pool_.available(plan))) break;
      }
      text << size << " " << none.bound << "\n";
    }
    return text.str();
  }

  void pass_over_all() {
    const std::vector<PlanBlock> list = pool_.blocks();
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

  void take_bounds(const PlanBlock& block, const WorkResult& result) {
    std::map<std::int64_t, Seconds> bounds;
    std::istringstream text(result.text);
    std::int64_t size = 0;
    Seconds bound = 0;
    while (result.done && text >> size >> bound) bounds[size] = bound;
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const auto found = bounds.find(pool_.plans()[i].candidate.micro_batch_size);
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
    const PooledPlan& plan = pool_.plans()[index];
    Experiment experiment = pool_.experiment(plan);
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
        if (plan.candidate.recompute.fewest_layers) layers = recompute_fewest_layers(experiment);
        const RankedTrial tried = try_without_contention(experiment);
        text << static_cast<int>(tried.verdict) << " " << tried.peak << " " << tried.reserved << " "
             << tried.step_time << " " << layers;
        break;
      }
      default: {
        const FullTrial tried = try_in_full(experiment, limits_.texts());
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
    const PooledPlan& plan = pool_.plans()[index];
    const bool fewest = plan.candidate.recompute.fewest_layers;
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
        if (tried.peak > pool_.available(plan) && !fewest) {
          drop(index, Fate::kDoesNotFit);
        } else {
          set_bound(index, Stage::kBounded, tried.bound, fewest ? 0 : tried.peak);
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
    const PooledPlan& plan = pool_.plans()[index];
    RankedTrial tried;
    int verdict = 0;
    std::int64_t layers = 0;
    text >> verdict >> tried.peak >> tried.reserved >> tried.step_time >> layers;
    tried.verdict = static_cast<report::Verdict>(verdict);
    ++report_.ranked;
    if (plan.candidate.recompute.fewest_layers) {
      if (layers == 0) {
        drop(index, Fate::kDoesNotFit);
        return;
      }
      pool_.resolve_layers(index, layers);
    }
    const std::string broken =
        limits_.broken_by_memory(tried.peak, tried.reserved, pool_.available(plan) - tried.peak);
    if (tried.verdict == report::Verdict::kDoesNotFit) {
      drop(index, Fate::kDoesNotFit);
    } else if (tried.verdict == report::Verdict::kBorderline && !request_.borderline) {
      drop(index, Fate::kBorderline);
    } else if (!broken.empty()) {
      drop(index, Fate::kLimit, broken);
    } else {
      trials_[index].result.step_time = tried.step_time;
      trials_[index].result.peak_memory = tried.peak;
      set_bound(index, Stage::kRanked, tried.step_time, tried.peak);
    }
  }

  void receive_confirmed(std::size_t index, const std::string& text) {
    Trial& trial = trials_[index];
    ++report_.confirmed;
    const std::size_t end = text.find('\n');
    trial.result = unpacked(text.substr(0, end));
    trial.result.plan = pool_.resolved(pool_.plans()[index]);
    trial.result.overrides = pool_.overrides(pool_.plans()[index]);
    if (trial.result.verdict == report::Verdict::kDoesNotFit) {
      // Into the memory of the hosts, which is known only now.
      drop(index, Fate::kDoesNotFit);
    } else if (const std::string broken = text.substr(end + 1); !broken.empty()) {
      drop(index, Fate::kLimit, broken);
    } else {
      frontier_.set(index, Stage::kConfirmed, value_of(index, trial.result.step_time));
    }
  }

  // --- report ---

  void finish() {
    const PlanBase& own = pool_.own();
    report_.name = own.experiment.name;
    report_.model = own.base.model.name;
    report_.cluster = own.base.cluster.name;
    report_.global_batch_size = own.base.plan.global_batch_size;
    report_.objective = request_.objective;
    report_.price = request_.price ? request_.price : own_price(request_.subject);
    report_.limits = request_.limits;
    choose_best();
    note_judged();
    count_rejected();
    report::compare_with_best(report_);
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
    for (std::size_t rank = request_.top; rank < best.size(); ++rank) judge(best[rank], true);
    if (best.size() > request_.top) best.resize(request_.top);
    report_.plans.reserve(best.size());
    for (const std::size_t index : best) report_.plans.push_back(trials_[index].result);
  }

  void judge(std::size_t index, bool simulated) {
    const PlanResult& result = trials_[index].result;
    report_.judged.push_back(
        {pool_.resolved(pool_.plans()[index]), result.step_time, result.peak_memory, simulated});
  }

  /// Adds those that only ran without contention.
  void note_judged() {
    const auto simulated = static_cast<std::ptrdiff_t>(report_.judged.size());
    for (std::size_t i = 0; i < trials_.size() && report_.ranked > 0; ++i) {
      if (frontier_.stage(i) == Stage::kRanked && trials_[i].fate == Fate::kOpen) judge(i, false);
    }
    std::stable_sort(
        report_.judged.begin() + simulated, report_.judged.end(),
        [](const report::JudgedPlan& a, const report::JudgedPlan& b) { return a.step_time < b.step_time; });
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
    const auto confirmed = static_cast<std::int64_t>(frontier_.count(Stage::kConfirmed));
    const auto ranked = static_cast<std::int64_t>(frontier_.count(Stage::kRanked));
    const std::int64_t bounded = fates[static_cast<std::size_t>(Fate::kOpen)] - ranked - confirmed;
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
    reject(confirmed - static_cast<std::int64_t>(report_.plans.size()), "were simulated and are slower");
    for (const auto& [reason, count] : failures) reject(count, "failed: " + reason);
  }

  const SearchRequest& request_;
  const SearchProgress& progress_;
  report::SearchReport report_;
  SearchLimits limits_;
  CandidatePool pool_;
  /// By plan of the pool.
  std::vector<Trial> trials_;
  search::Frontier frontier_;
};

}  // namespace

report::SearchReport search_plans(const SearchRequest& request, const SearchProgress& progress) {
  return Search(request, progress).run();
}

}  // namespace trainsim::cli
