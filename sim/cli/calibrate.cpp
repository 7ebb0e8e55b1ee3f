// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/collective_time.hpp"
#include "sim/config/experiment.hpp"
#include "sim/report/format.hpp"
#include "sim/validation/calibration.hpp"
#include "sim/validation/kernel_table.hpp"
#include "sim/validation/nccl_tests.hpp"

namespace trainsim::cli {

namespace {

using hardware::ClusterSpec;
using hardware::GpuSpec;
using validation::Calibration;
using validation::Fit;
using validation::MeasuredTable;
using validation::Pair;
using validation::Parameter;

/// A constant that can be fitted: its parameter, and where its value goes.
struct Constant {
  Parameter parameter;
  std::function<double&(ClusterSpec&)> field;
};

/// One kind of measurement with the constants that it may determine.
struct Study {
  std::string name;
  std::vector<Constant> constants;
  /// Measured and simulated times on a cluster.
  std::function<std::vector<Pair>(const ClusterSpec&)> pairs;
  /// Where the constants stand in the YAML of a cluster: "gpu", "intra_node", "nic" or "" (the cluster
  /// itself).
  std::string section;
};

Constant gpu_constant(Parameter parameter, double GpuSpec::*member) {
  return {std::move(parameter), [member](ClusterSpec& cluster) -> double& { return cluster.gpu.*member; }};
}

/// Below that the base latency of the fastest protocol would be none.
constexpr double kLeastCollectiveLatency = 5;

Parameter efficiency(const std::string& name) {
  return {name, 0.05, 1.0, 0, "", 1};
}

Parameter microseconds(const std::string& name, double least, double most) {
  return {name, least / kMega, most / kMega, 0, "us", kMega};
}

template <class Rows>
std::function<std::vector<Pair>(const ClusterSpec&)> kernel_pairs(Rows rows) {
  return [rows](const ClusterSpec& cluster) {
    std::vector<Pair> pairs(rows.size());
    std::transform(rows.begin(), rows.end(), pairs.begin(), [&cluster](const auto& row) {
      return Pair{row.seconds, simulated(row, cluster.gpu)};
    });
    return pairs;
  };
}

std::vector<Pair> collective_pairs(const std::vector<validation::MeasuredCollective>& rows,
                                   const ClusterSpec& cluster) {
  std::map<std::pair<std::int64_t, program::Pattern>, CollectiveBench> benches;
  std::vector<Pair> pairs;
  for (const validation::MeasuredCollective& row : rows) {
    const program::Pattern pattern = pattern_of(row.op);
    const CollectiveBench& bench =
        benches.try_emplace({row.gpus, pattern}, cluster, row.gpus, pattern).first->second;
    pairs.push_back({row.seconds, bench.time(row.op, row.bytes)});
  }
  return pairs;
}

/// The studies that a table of kernels allows.
std::vector<Study> kernel_studies(const MeasuredTable& table) {
  std::vector<Study> studies;
  if (!table.streams.empty()) {
    studies.push_back({"copies",
                       {gpu_constant(efficiency("memory_efficiency"), &GpuSpec::memory_efficiency),
                        gpu_constant(microseconds("kernel_overhead", 0, 20), &GpuSpec::kernel_overhead)},
                       kernel_pairs(table.streams),
                       "gpu"});
  }
  if (!table.matmuls.empty()) {
    studies.push_back({"multiplies",
                       {gpu_constant(efficiency("matmul_efficiency"), &GpuSpec::matmul_efficiency),
                        gpu_constant({"matmul_half_k", 0, 1024, 0, "", 1, 0.02}, &GpuSpec::matmul_half_k)},
                       kernel_pairs(table.matmuls),
                       "gpu"});
  }
  for (const bool backward : {false, true}) {
    std::vector<validation::MeasuredAttention> rows;
    std::copy_if(table.attentions.begin(), table.attentions.end(), std::back_inserter(rows),
                 [backward](const validation::MeasuredAttention& row) { return row.backward == backward; });
    if (rows.empty()) continue;
    const std::string name = backward ? "attention_efficiency_backward" : "attention_efficiency_forward";
    double GpuSpec::*member =
        backward ? &GpuSpec::attention_efficiency_backward : &GpuSpec::attention_efficiency_forward;
    studies.push_back({backward ? "backward attention kernels" : "forward attention kernels",
                       {gpu_constant(efficiency(name), member)},
                       kernel_pairs(std::move(rows)),
                       "gpu"});
  }
  return studies;
}

/// Collectives inside a node determine its links; those over several nodes the NICs.
std::vector<Study> collective_studies(const std::vector<validation::MeasuredCollective>& rows,
                                      const ClusterSpec& cluster) {
  std::vector<Study> studies;
  for (const bool inside : {true, false}) {
    std::vector<validation::MeasuredCollective> part;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(part),
                 [&](const auto& row) { return (row.gpus <= cluster.gpus_per_node) == inside; });
    if (part.empty()) continue;
    const auto link = [inside](ClusterSpec& spec) -> hardware::LinkSpec& {
      return inside ? spec.intra_node : spec.nic;
    };
    studies.push_back(
        {inside ? "collectives inside a node" : "collectives between nodes",
         {{efficiency("efficiency"), [link](ClusterSpec& spec) -> double& { return link(spec).efficiency; }},
          {microseconds("latency", 0, 60),
           [link](ClusterSpec& spec) -> double& { return link(spec).latency; }}},
         [part](const ClusterSpec& spec) { return collective_pairs(part, spec); },
         inside ? "intra_node" : "nic"});
    if (!inside) continue;
    studies.back().constants.push_back(
        {microseconds("collective_latency", kLeastCollectiveLatency, 200),
         [](ClusterSpec& spec) -> double& { return spec.collective_latency; }});
    if (cluster.intra_node.nvls_bandwidth <= 0) continue;
    studies.back().constants.push_back(
        {{"nvls_bandwidth", 0.05 * cluster.intra_node.bandwidth, cluster.intra_node.bandwidth, 0, "GB/s",
          1 / kGiga},
         [](ClusterSpec& spec) -> double& { return spec.intra_node.nvls_bandwidth; }});
  }
  return studies;
}

/// Runs the fit of one study from the constants of `cluster`, and leaves what it found there.
Calibration run_study(Study& study, ClusterSpec& cluster) {
  std::vector<Parameter> parameters;
  for (Constant& constant : study.constants) {
    constant.parameter.start = constant.field(cluster);
    parameters.push_back(constant.parameter);
  }
  const auto with = [&](const std::vector<double>& values) {
    ClusterSpec changed = cluster;
    for (std::size_t i = 0; i < values.size(); ++i) study.constants[i].field(changed) = values[i];
    return changed;
  };
  Calibration result = validation::calibrate(
      parameters, [&](const std::vector<double>& values) { return study.pairs(with(values)); });
  for (std::size_t i = 0; i < result.fits.size(); ++i)
    study.constants[i].field(cluster) = result.fits[i].value;
  return result;
}

std::string amount(const Parameter& parameter, double value) {
  const std::string digits = report::number(value * parameter.per_base, 3);
  return digits + (parameter.unit.empty() ? "" : " " + parameter.unit);
}

std::string constant_line(const Fit& fit) {
  return fit.parameter.name + ": {value: " + amount(fit.parameter, fit.value) + ", grade: fitted, range: [" +
         amount(fit.parameter, fit.low) + ", " + amount(fit.parameter, fit.high) + "]}\n";
}

/// Whether the search ended at the least or the most that it tries, other than nothing at all.
bool at_bound(const Fit& fit) {
  const Parameter& parameter = fit.parameter;
  const double near = 1e-3 * (parameter.most - parameter.least);
  return (parameter.least > 0 && fit.value < parameter.least + near) || fit.value > parameter.most - near;
}

/// Lines of the YAML by section, and its comments.
struct Sheet {
  std::string comments;
  std::map<std::string, std::string> sections;
};

void write_study(const Study& study, const Calibration& result, Sheet& sheet,
                 std::vector<std::string>& warnings) {
  const auto error = [](const validation::ErrorStatistics& errors) {
    return report::percent(errors.mean) + " (median " + report::percent(errors.median) + ")";
  };
  sheet.comments += "# " + std::to_string(result.after.rows) + " " + study.name + ": mean absolute error " +
                    error(result.before) + " before, " + error(result.after) + " after.\n";
  for (const Fit& fit : result.fits) {
    if (fit.refused.empty()) {
      const bool own = fit.parameter.name == "collective_latency";
      sheet.sections[own ? "" : study.section] += constant_line(fit);
      if (at_bound(fit)) {
        warnings.push_back(fit.parameter.name + " stands at the end of what is searched (" +
                           amount(fit.parameter, fit.value) + "): these " + study.name +
                           " hold more than the model explains; look at their units and conditions.");
        sheet.comments += "# " + warnings.back() + "\n";
      }
      continue;
    }
    warnings.push_back(fit.parameter.name + " can't be determined from these " + study.name + ": " +
                       fit.refused + ". The preset's value stays.");
    sheet.comments += "# " + warnings.back() + "\n";
  }
}

std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at) + 1;
    text += "  " + lines.substr(at, end - at);
    at = end;
  }
  return text;
}

std::string yaml_of(const Sheet& sheet, const CalibrationRequest& request) {
  std::string files;
  for (const std::string& file : request.files) {
    files += (files.empty() ? "" : ", ") + std::filesystem::path(file).filename().string();
  }
  std::string text = "# Made by trainsim calibrate from " + files + ".\n" + sheet.comments;
  if (!request.gpu.empty()) return text + "extends: " + request.gpu + "\n" + sheet.sections.at("gpu");
  text += "extends: " + request.cluster + "\n";
  for (const auto& [section, lines] : sheet.sections) {
    text += section.empty() ? lines : section + ":\n" + indented(lines);
  }
  return text;
}

/// Reads all files into one table; problems become warnings.
MeasuredTable read_files(const CalibrationRequest& request, std::vector<std::string>& warnings) {
  MeasuredTable all;
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (const std::string& file : request.files) {
    config::Report problems;
    MeasuredTable table;
    if (std::filesystem::path(file).extension() == ".csv") {
      table = validation::read_table(file, problems);
    } else {
      table.collectives = validation::read_nccl_tests(file, request.cluster, problems);
    }
    if (!problems.empty()) warnings.push_back(problems.text());
    append(all.matmuls, table.matmuls);
    append(all.attentions, table.attentions);
    append(all.collectives, table.collectives);
    append(all.streams, table.streams);
  }
  return all;
}

/// Throws InputError when tables are of several GPUs or clusters.
void check_one(const std::string& what, const std::set<std::string>& names) {
  if (names.size() <= 1) return;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw InputError("trainsim: error: the tables are of several " + what + "s (" + list +
                   "), and constants belong to one; give it a table with its own rows only");
}

void check_names(const MeasuredTable& table) {
  std::set<std::string> gpus;
  for (const auto& row : table.matmuls) gpus.insert(row.gpu);
  for (const auto& row : table.attentions) gpus.insert(row.gpu);
  for (const auto& row : table.streams) gpus.insert(row.gpu);
  check_one("GPU", gpus);
  std::set<std::string> clusters;
  for (const auto& row : table.collectives) clusters.insert(row.cluster);
  check_one("cluster", clusters);
}

/// Leaves out collectives that the cluster can't run.
void check_collectives(std::vector<validation::MeasuredCollective>& rows, const ClusterSpec& cluster,
                       std::vector<std::string>& warnings) {
  const auto wrong = [&cluster](const validation::MeasuredCollective& row) {
    return !collective_fault(cluster, row.gpus, pattern_of(row.op)).empty();
  };
  const auto first = std::find_if(rows.begin(), rows.end(), wrong);
  if (first == rows.end()) return;
  const std::string why = collective_fault(cluster, first->gpus, pattern_of(first->op));
  const auto left_out = std::erase_if(rows, wrong);
  warnings.push_back(std::to_string(left_out) + " collectives are left out: " + why);
}

}  // namespace

CalibrationText calibrate_files(const CalibrationRequest& request) {
  CalibrationText text;
  ClusterSpec cluster;
  if (request.cluster.empty()) {
    cluster.gpu = config::load_gpu(request.gpu);
  } else {
    cluster = config::load_cluster(request.cluster);
  }
  MeasuredTable table = read_files(request, text.warnings);
  check_names(table);
  std::vector<Study> studies = kernel_studies(table);
  if (!request.cluster.empty()) {
    check_collectives(table.collectives, cluster, text.warnings);
    for (Study& study : collective_studies(table.collectives, cluster)) studies.push_back(std::move(study));
  } else if (!table.collectives.empty()) {
    text.warnings.emplace_back("collectives say nothing of a GPU; use --cluster to fit links");
  }
  Sheet sheet;
  for (Study& study : studies) write_study(study, run_study(study, cluster), sheet, text.warnings);
  if (!sheet.sections.empty()) {
    text.yaml = yaml_of(sheet, request);
    return text;
  }
  std::string reasons;
  for (const std::string& warning : text.warnings) reasons += "\n  " + warning;
  throw InputError("trainsim: error: nothing can be calibrated from these files" + reasons +
                   "\ndocs/validation.md describes the tables, and which constant needs which");
}

}  // namespace trainsim::cli
