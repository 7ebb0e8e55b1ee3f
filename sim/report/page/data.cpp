// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "sim/report/memory.hpp"
#include "sim/report/network.hpp"
#include "sim/report/page/parts.hpp"

namespace trainsim::report {

namespace {

/// Points of a memory curve, and kinds of tensors that are named.
constexpr std::size_t kCurvePoints = 600;
constexpr std::size_t kTensorKinds = 20;

Json diagnosis_json(const Page& page) {
  const Diagnosis diagnosis = diagnose(page.summary, page.what_if);
  Json findings = Json::array();
  for (const Finding& finding : diagnosis.findings)
    findings.push_back({{"name", finding.name},
                        {"amount", finding.amount},
                        {"text", finding.text},
                        {"advice", finding.advice}});
  return {{"headline", diagnosis.headline}, {"findings", std::move(findings)}};
}

Json waterfall_json(const Summary& summary) {
  Json bars = Json::array();
  for (const WaterfallBar& bar : waterfall(summary)) {
    bars.push_back(
        {{"name", bar.name}, {"is_total", bar.is_total}, {"seconds", bar.seconds}, {"text", bar.text}});
  }
  return bars;
}

Json tensors_json(const StageMemory& memory) {
  Json list = Json::array();
  Bytes others = 0;
  std::int64_t other_count = 0;
  for (const TensorKind& kind : kinds_of(memory.tensors)) {
    if (list.size() < kTensorKinds) {
      list.push_back({{"name", kind.name},
                      {"category", program::to_string(kind.category)},
                      {"tensors", kind.count},
                      {"bytes", kind.bytes}});
    } else {
      others += kind.bytes;
      other_count += kind.count;
    }
  }
  if (other_count > 0)
    list.push_back(
        {{"name", "all others"}, {"category", nullptr}, {"tensors", other_count}, {"bytes", others}});
  return list;
}

/// Curves by program, and which program each rank of the result runs.
Json memory_json(const Summary& summary) {
  Json programs = Json::array();
  for (const StageMemory& memory : summary.stage_memory) {
    Json curve = Json::array();
    for (const Bytes bytes : columns_of(memory, summary.step_time, kCurvePoints))
      curve.push_back(std::llround(static_cast<double>(bytes) / kMebi));
    programs.push_back({{"highest_mib", std::move(curve)}, {"tensors", tensors_json(memory)}});
  }
  Json of_rank = Json::array();
  for (const RankSummary& rank : summary.ranks) of_rank.push_back(rank.memory);
  return {{"programs", std::move(programs)}, {"program_of_rank", std::move(of_rank)}};
}

Json kernels_json(const Page& page) {
  Json list = Json::array();
  for (const KernelShare& kernel : page.summary.kernels) {
    Json entry = {{"name", kernel.name},           {"kind", kernel.kind},   {"seconds", kernel.seconds},
                  {"runs", kernel.runs},           {"flops", kernel.flops}, {"bytes", kernel.bytes},
                  {"if_twice_as_fast_s", nullptr}, {"if_free_s", nullptr}};
    for (const KernelGain& gain : page.what_if.kernels) {
      if (gain.name != kernel.name) continue;
      entry["if_twice_as_fast_s"] = gain.if_twice_as_fast;
      entry["if_free_s"] = gain.if_free;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json exposed_json(const Summary& summary) {
  Json json = Json::object();
  for (std::size_t kind = 0; kind < program::kTrafficKinds; ++kind) {
    const auto traffic = static_cast<program::TrafficKind>(kind);
    json[program::to_string(traffic)] = exposed(summary, traffic);
  }
  return json;
}

Json link_curves_json(const Page& page) {
  Json list = Json::array();
  for (const program::LinkCurve& curve : page.link_curves) {
    Json busy = Json::object();
    for (std::size_t kind = 0; kind < curve.busy.size(); ++kind) {
      if (curve.busy[kind].empty()) continue;
      Json parts = Json::array();
      // A thousandth is finer than a pixel.
      for (const double share : curve.busy[kind]) parts.push_back(std::round(share * 1000.0) / 1000.0);
      busy[program::to_string(static_cast<program::TrafficKind>(kind))] = std::move(parts);
    }
    list.push_back({{"name", curve.name}, {"busy", std::move(busy)}});
  }
  return list;
}

Json changes_json(const WhatIf& what_if) {
  Json list = Json::array();
  for (const PlanChange& change : what_if.changes) {
    list.push_back({{"label", change.label},
                    {"set", change.overrides},
                    {"relative_throughput", change.relative_throughput},
                    {"step_time_s", change.step_time},
                    {"bubble_ratio", change.bubble_ratio},
                    {"verdict", to_string(change.verdict)},
                    {"peak_memory_bytes", change.peak_memory},
                    {"memory_headroom_bytes", change.headroom}});
  }
  return list;
}

Json defaults_json(const config::Experiment& experiment) {
  Json list = Json::array();
  for (const auto& [key, value] : experiment.defaults) list.push_back(Json::array({key, value}));
  return list;
}

Json constants_json(const config::Experiment& experiment) {
  Json list = Json::array();
  for (const config::Constant& constant : experiment.constants) {
    list.push_back({{"path", constant.path},
                    {"value", constant.value},
                    {"grade", config::to_string(constant.grade)},
                    {"low", constant.varies() ? Json(constant.text(constant.low)) : Json(nullptr)},
                    {"high", constant.varies() ? Json(constant.text(constant.high)) : Json(nullptr)}});
  }
  return list;
}

Json model_json(const model::ModelSpec& model) {
  return {{"num_layers", model.num_layers},
          {"hidden_size", model.hidden_size},
          {"num_attention_heads", model.num_attention_heads},
          {"vocab_size", model.vocab_size},
          {"sequence_length", model.sequence_length}};
}

}  // namespace

Json page_json(const Page& page) {
  const hardware::ClusterSpec& cluster = page.experiment.cluster;
  Json json = {{"result", to_tree(page.summary)}};
  json["diagnosis"] = diagnosis_json(page);
  json["waterfall"] = waterfall_json(page.summary);
  json["timeline"] = timeline_json(page);
  json["memory"] = memory_json(page.summary);
  json["kernels"] = kernels_json(page);
  json["exposed_s"] = exposed_json(page.summary);
  json["link_curves"] = link_curves_json(page);
  json["uncontended_step_time_s"] = page.what_if.step_time;
  json["changes"] = changes_json(page.what_if);
  json["what_if"] = what_ifs_json(page.asked);
  json["memory_bandwidth_bytes_per_s"] = cluster.gpu.memory_bandwidth;
  json["gpus_per_node"] = cluster.gpus_per_node;
  json["model_shape"] = model_json(page.experiment.model);
  json["defaults"] = defaults_json(page.experiment);
  json["constants"] = constants_json(page.experiment);
  return json;
}

}  // namespace trainsim::report
