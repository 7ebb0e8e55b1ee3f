// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "sim/report/csv_cells.hpp"
#include "sim/report/json_dump.hpp"
#include "sim/report/search.hpp"
#include "sim/report/search_tree.hpp"
#include "sim/search/candidate.hpp"

namespace trainsim::report {

namespace {

Json by_cause(const std::array<Seconds, program::kCauses>& seconds) {
  Json json = Json::object();
  for (std::size_t c = 0; c < seconds.size(); ++c)
    json[program::to_string(static_cast<program::Cause>(c))] = seconds[c];
  return json;
}

Json left_out(const std::vector<LeftOut>& list) {
  Json json = Json::array();
  for (const LeftOut& each : list) json.push_back({{"reason", each.reason}, {"count", each.count}});
  return json;
}

using Columns = std::vector<std::pair<std::string, std::string>>;

/// What a row of a table shows of a plan.
Columns columns(const PlanResult& result) {
  const plan::ParallelPlan& plan = result.plan;
  Columns row = {{"gpus", std::to_string(plan.gpus)},
                 {"tensor_parallel", std::to_string(plan.tensor_parallel)},
                 {"pipeline_parallel", std::to_string(plan.pipeline_parallel)},
                 {"context_parallel", std::to_string(plan.context_parallel)},
                 {"expert_parallel", std::to_string(plan.expert_parallel)},
                 {"virtual_pipeline", std::to_string(plan.virtual_pipeline)},
                 {"data_parallel", std::to_string(plan.data_parallel)},
                 {"micro_batch_size", std::to_string(plan.micro_batch_size)},
                 {"global_batch_size", std::to_string(plan.global_batch_size)},
                 {"schedule", plan::to_string(plan.schedule)},
                 {"sequence_parallel", plan.sequence_parallel ? "true" : "false"},
                 {"recompute", cell(search::to_string(plan.recompute))},
                 {"sharding", plan::to_string(plan.sharding)},
                 {"step_time_s", exact(result.step_time)},
                 {"relative", exact(result.relative)},
                 {"tokens_per_s", exact(result.tokens_per_second)},
                 {"gpu_hours_per_step", exact(gpu_hours(result))},
                 {"mfu", exact(result.mfu)},
                 {"bubble_ratio", exact(result.bubble_ratio)},
                 {"scaling_efficiency", exact(result.scaling_efficiency)},
                 {"verdict", to_string(result.verdict)},
                 {"peak_memory_bytes", std::to_string(result.peak_memory)},
                 {"peak_reserved_bytes", std::to_string(result.peak_reserved)},
                 {"memory_headroom_bytes", std::to_string(result.headroom)}};
  for (std::size_t c = 0; c < result.breakdown.size(); ++c) {
    std::string name = "breakdown_";
    name.append(program::to_string(static_cast<program::Cause>(c))).append("_s");
    row.emplace_back(std::move(name), exact(result.breakdown[c]));
  }
  return row;
}

std::string header(const Columns& row) {
  std::string text;
  for (const auto& [name, value] : row) text.append(text.empty() ? "" : ",").append(name);
  return text.append("\n");
}

std::string line(const Columns& row) {
  std::string text;
  bool first = true;
  for (const auto& [name, value] : row) {
    text.append(first ? "" : ",").append(value);
    first = false;
  }
  return text.append("\n");
}

Columns search_row(const SearchReport& report, const PlanResult& result, const std::string& rank) {
  Columns row = {
      {"name", cell(report.name)}, {"rank", rank}, {"complete", report.complete ? "true" : "false"}};
  const Columns plan = columns(result);
  row.insert(row.end(), plan.begin(), plan.end());
  row.emplace_back("cost_per_step", report.price ? exact(*report.price * gpu_hours(result)) : "");
  row.emplace_back("why", cell(result.why));
  return row;
}

Columns neighbour_row(const NeighbourReport& report, const PlanResult& result, const std::string& change) {
  Columns row = {{"name", cell(report.name)}, {"change", cell(change)}};
  const Columns plan = columns(result);
  row.insert(row.end(), plan.begin(), plan.end());
  row.emplace_back("why", cell(result.why));
  return row;
}

}  // namespace

Json to_tree(const PlanResult& result) {
  const plan::ParallelPlan& plan = result.plan;
  return {{"step_time_s", result.step_time},
          {"relative", result.relative},
          {"why", result.why},
          {"tokens_per_s", result.tokens_per_second},
          {"gpu_hours_per_step", gpu_hours(result)},
          {"mfu", result.mfu},
          {"bubble_ratio", result.bubble_ratio},
          {"scaling_efficiency", result.scaling_efficiency},
          {"verdict", to_string(result.verdict)},
          {"peak_memory_bytes", result.peak_memory},
          {"peak_reserved_bytes", result.peak_reserved},
          {"memory_headroom_bytes", result.headroom},
          {"gpus", plan.gpus},
          {"tensor_parallel", plan.tensor_parallel},
          {"pipeline_parallel", plan.pipeline_parallel},
          {"context_parallel", plan.context_parallel},
          {"expert_parallel", plan.expert_parallel},
          {"virtual_pipeline", plan.virtual_pipeline},
          {"data_parallel", plan.data_parallel},
          {"micro_batch_size", plan.micro_batch_size},
          {"global_batch_size", plan.global_batch_size},
          {"schedule", plan::to_string(plan.schedule)},
          {"sequence_parallel", plan.sequence_parallel},
          {"recompute", search::to_string(plan.recompute)},
          {"sharding", plan::to_string(plan.sharding)},
          {"breakdown", by_cause(result.breakdown)},
          {"overrides", result.overrides}};
}

Json to_tree(const SearchReport& report) {
  Json plans = Json::array();
  for (const PlanResult& plan : report.plans) plans.push_back(to_tree(plan));
  return {{"schema", 1},
          {"name", report.name},
          {"model", report.model},
          {"cluster", report.cluster},
          {"global_batch_size", report.global_batch_size},
          {"objective", to_string(report.objective)},
          {"price_per_gpu_hour", report.price ? Json(*report.price) : Json(nullptr)},
          {"limits", report.limits},
          {"complete", report.complete},
          {"considered", report.considered},
          {"legal", report.legal},
          {"ranked", report.ranked},
          {"confirmed", report.confirmed},
          {"rejected", left_out(report.rejected)},
          {"illegal", left_out(report.illegal)},
          {"plans", std::move(plans)},
          {"own", report.own ? to_tree(*report.own) : Json(nullptr)},
          {"own_keeps_limits", report.own ? Json(report.own_keeps_limits) : Json(nullptr)}};
}

std::string to_json(const SearchReport& report) {
  return dump(to_tree(report));
}

std::string to_csv(const SearchReport& report) {
  std::string text = header(search_row(report, PlanResult{}, ""));
  for (std::size_t i = 0; i < report.plans.size(); ++i)
    text += line(search_row(report, report.plans[i], std::to_string(i + 1)));
  if (report.own) text += line(search_row(report, *report.own, "own"));
  return text;
}

std::string to_json(const NeighbourReport& report) {
  Json neighbours = Json::array();
  for (const NeighbourResult& neighbour : report.neighbours) {
    Json json = {{"change", neighbour.change}};
    json.update(to_tree(neighbour.result));
    neighbours.push_back(std::move(json));
  }
  return dump({{"schema", 1},
               {"name", report.name},
               {"verdict", verdict_on(report)},
               {"own", to_tree(report.own)},
               {"neighbours", std::move(neighbours)},
               {"illegal", report.illegal}});
}

std::string to_csv(const NeighbourReport& report) {
  std::string text =
      header(neighbour_row(report, PlanResult{}, "")) + line(neighbour_row(report, report.own, ""));
  for (const NeighbourResult& neighbour : report.neighbours)
    text += line(neighbour_row(report, neighbour.result, neighbour.change));
  return text;
}

}  // namespace trainsim::report
