// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/what_if.hpp"

#include <algorithm>
#include <set>

#include "sim/base/diagnostics.hpp"
#include "sim/base/op_class.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/config/what_if.hpp"
#include "sim/report/sensitivity.hpp"

namespace trainsim::cli {

namespace {

constexpr const char* kBetter = "+10%";
/// A time that is better by the same factor: 1 / 1.1.
constexpr const char* kShorter = "x0.909090909090909091";

/// A part of the hardware that is made better.
struct Part {
  const char* name;
  const char* meaning;
  const char* change = kBetter;
  /// Whether only jobs on several nodes use it.
  bool between_nodes = false;
};

constexpr std::array<Part, 9> kParts = {{{"gpu.peak_flops", "peak FLOP/s of the GPU"},
                                         {"gpu.hbm_bandwidth", "memory bandwidth of the GPU"},
                                         {"gpu.memory", "memory capacity of the GPU"},
                                         {"network.nvlink", "NVLink bandwidth"},
                                         {"network.intra_node", "bandwidth inside nodes"},
                                         {"network.pcie", "PCIe bandwidth", kBetter, true},
                                         {"network.nic", "NIC bandwidth", kBetter, true},
                                         {"network.latency", "network latency", kShorter},
                                         {"host.launch_rate", "launch rate of the host"}}};

std::string value_of(const config::Experiment& base, const std::string& key) {
  for (const auto& [name, value] : base.values) {
    if (name == key) return value;
  }
  return "";
}

bool is_used(const config::Experiment& base, const Part& part) {
  const std::string name = part.name;
  if (base.plan.gpus == 1 && name.starts_with("network.")) return false;
  if (part.between_nodes && base.plan.gpus <= base.cluster.gpus_per_node) return false;
  const bool inside = name == "network.nvlink" || name == "network.intra_node";
  if (inside && base.cluster.gpus_per_node == 1) return false;
  const bool nvlink = value_of(base, "cluster.intra_node.kind") == "nvswitch";
  if (inside && nvlink != (name == "network.nvlink")) return false;
  const auto& names = config::what_if_names();
  return std::any_of(names.begin(), names.end(), [&](const config::WhatIfName& known) {
    return known.name == name && config::has(base, known);
  });
}

/// Operations that a step has.
std::set<OpClass> operations_of(const config::Experiment& base) {
  std::set<OpClass> operations;
  for (const program::Program& program : build_job(base, true).programs) {
    for (const program::Segment& segment : program.segments) {
      for (const program::Kernel& kernel : segment.kernels) {
        if (const auto op = program::op_class(kernel.kind, kernel.name); op && kernel.seconds > 0)
          operations.insert(*op);
      }
    }
  }
  return operations;
}

report::SensitivityRow operation_row(OpClass op) {
  const std::string name = std::string("op.") + to_string(op) + ".speedup";
  return {name, to_string(op), name + "=" + kBetter, true};
}

std::vector<report::SensitivityRow> rows_of(const config::Experiment& base) {
  std::vector<report::SensitivityRow> rows;
  rows.reserve(kParts.size() + kOpClasses);
  for (const Part& part : kParts) {
    if (is_used(base, part))
      rows.push_back({part.name, part.meaning, std::string(part.name).append("=").append(part.change)});
  }
  for (const OpClass op : operations_of(base)) rows.push_back(operation_row(op));
  return rows;
}

Variation load_changed(const Subject& subject, const config::Experiment& base, const std::string& label) {
  const Overrides changes = config::overrides_for(config::split_changes(label), base, "--what-if");
  Variation variation{label, joined(subject.overrides, changes), {}};
  try {
    variation.experiment = config::load(subject.name, variation.overrides, config::Scope::kStep);
  } catch (const InputError& error) {
    throw InputError("trainsim: error: --what-if " + label + " is not possible:\n" + error.what());
  }
  return variation;
}

}  // namespace

std::vector<Variation> load_what_ifs(const Subject& subject, const config::Experiment& base,
                                     const std::vector<std::string>& questions) {
  std::vector<Variation> variations;
  variations.reserve(questions.size());
  for (const std::string& question : questions) variations.push_back(load_changed(subject, base, question));
  return variations;
}

report::Sensitivity measure_sensitivity(const Subject& subject, const config::Experiment& base,
                                        const VariationOptions& options) {
  report::Sensitivity sensitivity{rows_of(base)};
  std::vector<std::string> questions(sensitivity.rows.size());
  std::transform(sensitivity.rows.begin(), sensitivity.rows.end(), questions.begin(),
                 [](const report::SensitivityRow& row) { return row.change; });
  const std::vector<report::ComparedRun> runs =
      simulate_variations(load_what_ifs(subject, base, questions), options);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    sensitivity.rows[i].step_time = runs[i].figures.step_time;
    sensitivity.rows[i].verdict = runs[i].figures.verdict;
  }
  report::sort_by_gain(sensitivity);
  return sensitivity;
}

}  // namespace trainsim::cli
