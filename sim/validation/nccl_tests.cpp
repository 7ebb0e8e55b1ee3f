// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/nccl_tests.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/config/quantity.hpp"
#include "sim/config/source.hpp"

namespace trainsim::validation {

namespace {

/// What the comment lines above a result say of it.
struct Header {
  std::int64_t ranks = 0;
  /// Name of the program; empty when the output doesn't say.
  std::string program;
  /// Column of the out-of-place time; the older the program, the fewer columns stand before it.
  std::size_t time_column = 5;
};

/// Programs whose collectives are simulated.
const std::vector<std::pair<std::string_view, program::CollectiveOp>>& programs() {
  static const std::vector<std::pair<std::string_view, program::CollectiveOp>> known = {
      {"all_reduce_perf", program::CollectiveOp::kAllReduce},
      {"all_gather_perf", program::CollectiveOp::kAllGather},
      {"reduce_scatter_perf", program::CollectiveOp::kReduceScatter},
      {"broadcast_perf", program::CollectiveOp::kBroadcast},
      {"alltoall_perf", program::CollectiveOp::kAllToAll}};
  return known;
}

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream stream{std::string(line)};
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

void read_comment(std::string_view line, Header& header) {
  const std::vector<std::string> words = words_of(line.substr(1));
  if (words.empty()) return;
  if (words[0] == "Using") header.ranks = 0;
  if (words[0] == "Rank") ++header.ranks;
  if (line.find("Collective test starting") != std::string_view::npos) header.program = words.back();
  const auto time = std::find(words.begin(), words.end(), "time");
  if (words[0] == "size" && time != words.end()) {
    header.time_column = static_cast<std::size_t>(time - words.begin());
  }
}

/// A result line: size, time (us) and the ratio of its two bandwidths; nothing for any other line.
struct Result {
  double size = 0;
  double time = 0;
  double bus_ratio = 0;
};

std::optional<Result> read_result(std::string_view line, const Header& header) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() <= header.time_column + 2) return std::nullopt;
  if (words[0].find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const auto number = [&words](std::size_t column) { return config::parse_number(words[column]).value; };
  const std::optional<double> size = number(0);
  const std::optional<double> time = number(header.time_column);
  const double algorithm = number(header.time_column + 1).value_or(0);
  const double bus = number(header.time_column + 2).value_or(0);
  if (!size || !time || *size <= 0 || *time <= 0) return std::nullopt;
  return Result{*size, *time, algorithm > 0 ? bus / algorithm : 0};
}

/// Operation of a result; nothing when it is not simulated, or not said. Only an all-reduce has a bus
/// bandwidth above that of the algorithm (nccl-tests, doc/PERFORMANCE.md): 2 (n-1) / n of it.
std::optional<program::CollectiveOp> operation_of(const Header& header, const Result& result) {
  for (const auto& [name, op] : programs()) {
    if (header.program == name) return op;
  }
  const auto ranks = static_cast<double>(header.ranks);
  const bool all_reduce = std::abs(result.bus_ratio * ranks / (2 * (ranks - 1)) - 1) < 0.05;
  // Of two ranks, both bandwidths are the same for other operations too.
  if (header.program.empty() && all_reduce && header.ranks > 2) return program::CollectiveOp::kAllReduce;
  return std::nullopt;
}

/// Why a line can't be used; empty when it can.
std::string fault_of(const Header& header, const Result& result) {
  if (header.ranks < 2)
    return "no line '#  Rank …' above says how many GPUs took part; keep the whole output";
  if (operation_of(header, result)) return "";
  const std::string cure =
      "; all_reduce_perf, all_gather_perf, reduce_scatter_perf, broadcast_perf and alltoall_perf can be used";
  if (!header.program.empty()) return "results of '" + header.program + "' are not simulated" + cure;
  return "no line above says which program this is; write '# Collective test starting: all_reduce_perf' "
         "(or another) before it" +
         cure;
}

}  // namespace

std::vector<MeasuredCollective> read_nccl_tests(const std::filesystem::path& file, const std::string& cluster,
                                                config::Report& report) {
  const std::shared_ptr<const config::Source> source = config::read_source(file, 0, report);
  if (!source) return {};
  Header header;
  std::vector<MeasuredCollective> results;
  bool any = false;
  const auto lines = static_cast<int>(std::count(source->text().begin(), source->text().end(), '\n')) + 1;
  for (int number = 1; number <= lines; ++number) {
    const std::string_view line = source->line(number);
    if (line.starts_with('#')) {
      read_comment(line, header);
      continue;
    }
    const std::optional<Result> result = read_result(line, header);
    if (!result) continue;
    any = true;
    if (const std::string fault = fault_of(header, *result); !fault.empty()) {
      report.add({source, number, 1}, "", fault);
      return {};
    }
    results.push_back(
        {cluster, header.ranks, result->size, result->time / kMega, *operation_of(header, *result)});
  }
  if (!any) {
    report.add({source, 0, 0}, "", "no line with a size and a time; this is not the output of nccl-tests");
  }
  return results;
}

}  // namespace trainsim::validation
