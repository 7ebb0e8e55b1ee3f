// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/bench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "sim/base/diagnostics.hpp"
#include "sim/base/spelling.hpp"
#include "sim/base/text.hpp"
#include "sim/cli/collective_time.hpp"
#include "sim/config/experiment.hpp"
#include "sim/config/quantity.hpp"
#include "sim/config/report.hpp"
#include "sim/plan/plan.hpp"
#include "sim/validation/nccl_tests.hpp"

namespace trainsim::cli {

namespace {

using program::CollectiveOp;
using validation::MeasuredCollective;

constexpr const char* kUsualSizes = "1 MiB..1 GiB";
constexpr std::size_t kMostSizes = 10'000;

[[noreturn]] void fail(const std::string& message) {
  throw InputError("trainsim: error: " + message);
}

CollectiveOp op_named(const std::string& name) {
  std::vector<std::string> names;
  for (const CollectiveOp op : program::kCollectiveOps) {
    names.emplace_back(program::to_string(op));
    if (names.back() == name) return op;
  }
  const std::string near = closest_match(name, names);
  fail("--op '" + name + "' is not simulated; use " + join_alternatives(names) +
       (near.empty() ? "" : " (did you mean '" + near + "'?)"));
}

double size_of(const std::string& text) {
  const auto size = config::parse_quantity(trimmed(text), config::Dimension::kSize);
  if (!size.value) fail("--sizes: " + size.error);
  if (!(*size.value >= 1) || *size.value > 1e15)
    fail("--sizes: '" + std::string(trimmed(text)) + "' is not between 1 B and 1 PB");
  return std::round(*size.value);
}

double factor_of(const std::string& text) {
  const auto factor = config::parse_number(trimmed(text));
  if (!factor.value || *factor.value <= 1) {
    fail("--sizes: the factor behind '*' must be a number above 1, not '" + std::string(trimmed(text)) + "'");
  }
  return *factor.value;
}

/// "A..B" or "A..B*F".
std::vector<double> range_of(const std::string& text, std::size_t dots) {
  const std::size_t star = std::min(text.find('*', dots), text.size());
  const double factor = star < text.size() ? factor_of(text.substr(star + 1)) : 2.0;
  const double first = size_of(text.substr(0, dots));
  const double last = size_of(text.substr(dots + 2, star - dots - 2));
  if (last < first) fail("--sizes: the range '" + text + "' ends below its start");
  std::vector<double> sizes;
  for (double size = first; size <= last && sizes.size() < kMostSizes; size *= factor) {
    sizes.push_back(std::round(size));
  }
  return sizes;
}

/// The measured rows of a file, of which all must be alike.
std::vector<MeasuredCollective> read_measured(const BenchRequest& request) {
  config::Report problems;
  std::vector<MeasuredCollective> rows =
      validation::read_nccl_tests(request.compare, request.cluster, problems);
  problems.throw_if_any();
  std::set<std::pair<std::int64_t, CollectiveOp>> kinds;
  for (const MeasuredCollective& row : rows) kinds.emplace(row.gpus, row.op);
  if (kinds.size() > 1) {
    fail("'" + request.compare +
         "' holds runs of several programs or numbers of GPUs; compare one at a time");
  }
  const MeasuredCollective& row = rows.front();
  if (request.gpus > 0 && request.gpus != row.gpus) {
    fail("--gpus " + std::to_string(request.gpus) + ", but '" + request.compare + "' was measured on " +
         std::to_string(row.gpus) + "; leave --gpus out");
  }
  if (!request.op.empty() && op_named(request.op) != row.op) {
    fail("--op " + request.op + ", but '" + request.compare + "' holds " + program::to_string(row.op) +
         "; leave --op out");
  }
  if (!request.sizes.empty())
    fail("--sizes and --compare exclude each other: the sizes are those of the file");
  return rows;
}

report::BenchRow simulated(const CollectiveBench& bench, CollectiveOp op, double bytes) {
  const program::CollectiveCost cost = bench.cost(op, bytes);
  return {bytes, bench.time(op, bytes), cost.algorithm, cost.wire, std::nullopt};
}

}  // namespace

std::vector<double> parse_sizes(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots != std::string::npos) return range_of(text, dots);
  std::vector<double> sizes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    sizes.push_back(size_of(text.substr(at, comma - at)));
    at = comma + 1;
  }
  return sizes;
}

report::Bench run_bench(const BenchRequest& request) {
  report::Bench result{"", CollectiveOp::kAllReduce, request.gpus, 0, {}};
  std::vector<MeasuredCollective> measured;
  if (!request.compare.empty()) {
    measured = read_measured(request);
    result.op = measured.front().op;
    result.gpus = measured.front().gpus;
  } else {
    if (!request.op.empty()) result.op = op_named(request.op);
  }
  // What the number of GPUs itself makes impossible is reported below, without a place.
  const auto check = [&result](const hardware::ClusterSpec& spec) {
    if (result.gpus == 0) result.gpus = spec.gpus_per_node;
    const bool whole_nodes = result.gpus % spec.gpus_per_node == 0 && spec.nics_per_node > 0;
    const bool possible = result.gpus <= spec.gpus_per_node || whole_nodes;
    return possible ? plan::check_cluster(spec, result.gpus) : Problems{};
  };
  const hardware::ClusterSpec cluster = config::load_cluster(request.cluster, request.overrides, check);
  result.cluster = cluster.name;
  if (const std::string fault = collective_fault(cluster, result.gpus, pattern_of(result.op)); !fault.empty())
    fail("--gpus: " + fault);
  const CollectiveBench bench(cluster, result.gpus, pattern_of(result.op));
  result.nodes = bench.nodes();
  for (const MeasuredCollective& row : measured) {
    result.rows.push_back(simulated(bench, result.op, row.bytes));
    result.rows.back().measured = row.seconds;
  }
  if (!measured.empty()) return result;
  for (const double size : parse_sizes(request.sizes.empty() ? kUsualSizes : request.sizes)) {
    result.rows.push_back(simulated(bench, result.op, size));
  }
  return result;
}

}  // namespace trainsim::cli
