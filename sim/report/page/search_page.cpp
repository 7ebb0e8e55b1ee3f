// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/search_page.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/format.hpp"
#include "sim/report/page/frame.hpp"
#include "sim/report/page/front.hpp"
#include "sim/report/search_tree.hpp"

namespace trainsim::report {

namespace {

/// Plans beside the best that a page shows at most.
constexpr std::size_t kMostOthers = 2000;

Json labelled(const PlanResult& result) {
  Json json = to_tree(result);
  json["label"] = plan_label(result.plan);
  return json;
}

/// What the chart shows of a plan that is not among the best.
Json judged_json(const JudgedPlan& judged) {
  return {{"label", plan_label(judged.plan)},
          {"gpus", judged.plan.gpus},
          {"step_time_s", judged.step_time},
          {"peak_memory_bytes", judged.peak_memory},
          {"gpu_hours_per_step", gpu_hours(judged.plan.gpus, judged.step_time)},
          {"simulated", judged.simulated}};
}

/// A plan that was simulated in full.
struct Simulated {
  plan::ParallelPlan plan;
  Seconds step_time = 0;
  Bytes peak_memory = 0;
};

/// Whether the configuration's own plan competes with the others, and is none of them.
bool own_competes(const SearchReport& report, const std::vector<Simulated>& others) {
  if (!report.own || !report.own_keeps_limits || report.own->verdict == Verdict::kDoesNotFit) return false;
  const PlanResult& own = *report.own;
  return std::none_of(others.begin(), others.end(), [&own](const Simulated& other) {
    return other.step_time == own.step_time && other.peak_memory == own.peak_memory;
  });
}

/// The best plans, all others that were simulated, and the configuration's own, in that order.
std::vector<Simulated> simulated_plans(const SearchReport& report) {
  std::vector<Simulated> all;
  all.reserve(report.plans.size() + report.judged.size() + 1);
  for (const PlanResult& result : report.plans)
    all.push_back({result.plan, result.step_time, result.peak_memory});
  for (const JudgedPlan& judged : report.judged) {
    if (judged.simulated) all.push_back({judged.plan, judged.step_time, judged.peak_memory});
  }
  if (own_competes(report, all))
    all.push_back({report.own->plan, report.own->step_time, report.own->peak_memory});
  return all;
}

/// Objectives that differ by less, as a share, are the same.
constexpr double kSame = 1e-6;

/// A front over plans that were simulated: places in the order above, and a sentence.
Json front_json(const std::vector<Simulated>& plans, const std::function<double(const Simulated&)>& other,
                const std::function<std::string(const Simulated&)>& write, const std::string& what) {
  std::vector<std::pair<double, double>> points(plans.size());
  std::transform(plans.begin(), plans.end(), points.begin(), [&other](const Simulated& each) {
    return std::pair{each.step_time, other(each)};
  });
  const auto text = [&](std::size_t point) {
    const Simulated& each = plans[point];
    return plan_label(each.plan) + " (" + duration(each.step_time) + ", " + write(each) + ")";
  };
  const FrontTexts texts{"plan that was simulated in full", "plans that were simulated in full", what, text};
  return {{"points", pareto_front(points)}, {"sentence", front_sentence(points, texts)}};
}

bool gpus_vary(const std::vector<Simulated>& plans) {
  return std::any_of(plans.begin(), plans.end(),
                     [&plans](const Simulated& each) { return each.plan.gpus != plans.front().plan.gpus; });
}

/// How the configuration's own plan stands against the best; empty without it.
std::string own_sentence(const SearchReport& report) {
  if (!report.own) return "";
  if (report.own->verdict == Verdict::kDoesNotFit) return " Yours does not fit into memory.";
  if (!report.own_keeps_limits) return " Yours breaks a limit.";
  const double more = report.own->relative - 1;
  if (std::abs(more) < kSame) return " Yours is as good.";
  return " Yours takes " + percent(std::abs(more)) + (more > 0 ? " more " : " less ") +
         (report.objective == Objective::kStepTime ? "time per step." : "GPU-hours per step.");
}

std::string headline(const SearchReport& report) {
  if (report.plans.empty()) return "No plan was found that is legal, fits into memory and keeps the limits.";
  const PlanResult& best = report.plans.front();
  const std::string of =
      report.legal == 1 ? "The only legal plan" : "Best of " + std::to_string(report.legal) + " legal plans";
  return of + ": " + plan_label(best.plan) + " with " + duration(best.step_time) + " per step, MFU " +
         percent(best.mfu) + ", " + gib(best.peak_memory) + " on the fullest GPU." + own_sentence(report);
}

Json page_json(const SearchReport& report) {
  const std::vector<Simulated> simulated = simulated_plans(report);
  Json plans = Json::array();
  for (const PlanResult& plan : report.plans) plans.push_back(labelled(plan));
  Json judged = Json::array();
  for (const JudgedPlan& each : report.judged) {
    if (judged.size() < kMostOthers) judged.push_back(judged_json(each));
  }
  Json json = {{"headline", headline(report)}, {"search", to_tree(report)}};
  json["search"]["plans"] = std::move(plans);
  if (report.own) json["search"]["own"] = labelled(*report.own);
  json["judged"] = std::move(judged);
  json["judged_in_all"] = report.judged.size();
  json["memory_front"] = front_json(
      simulated, [](const Simulated& each) { return static_cast<double>(each.peak_memory); },
      [](const Simulated& each) { return gib(each.peak_memory); }, "least memory");
  const auto hours = [](const Simulated& each) { return gpu_hours(each.plan.gpus, each.step_time); };
  json["cost_front"] =
      gpus_vary(simulated)
          ? front_json(
                simulated, hours,
                [&hours](const Simulated& each) { return number(hours(each)) + " GPU-hours"; },
                "fewest GPU-hours")
          : Json(nullptr);
  return json;
}

}  // namespace

std::string to_html(const SearchPage& page) {
  return framed(kSearchPage, {"Search for plans", page.search.name, "", page.command, page.version},
                page_json(page.search));
}

}  // namespace trainsim::report
