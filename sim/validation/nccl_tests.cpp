// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/nccl_tests.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "sim/base/units.hpp"
#include "sim/config/source.hpp"

namespace trainsim::validation {

namespace {

/// Columns of a result up to the out-of-place time: size, count, type, operation, root, time.
constexpr std::size_t kTimeColumn = 5;

/// What the comment lines say.
struct Header {
  std::int64_t ranks = 0;
  program::CollectiveOp op = program::CollectiveOp::kAllReduce;
};

void read_comment(std::string_view line, Header& header) {
  std::istringstream words{std::string(line.substr(1))};
  std::string first;
  words >> first;
  if (first == "Rank") ++header.ranks;
  if (line.find("Collective test starting") == std::string_view::npos) return;
  if (line.find("all_gather") != std::string_view::npos) header.op = program::CollectiveOp::kAllGather;
  if (line.find("reduce_scatter") != std::string_view::npos)
    header.op = program::CollectiveOp::kReduceScatter;
}

/// Size and time (us) of a result line; nothing for any other line.
std::optional<std::pair<double, double>> read_result(std::string_view line) {
  std::istringstream stream{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.size() <= kTimeColumn) return std::nullopt;
  const bool digits = words[0].find_first_not_of("0123456789") == std::string::npos;
  char* end = nullptr;
  const double time = std::strtod(words[kTimeColumn].c_str(), &end);
  const double size = digits ? std::strtod(words[0].c_str(), nullptr) : 0;
  if (size <= 0 || *end != '\0' || !(time > 0)) return std::nullopt;
  return std::pair(size, time);
}

}  // namespace

std::vector<MeasuredCollective> read_nccl_tests(const std::filesystem::path& file, const std::string& cluster,
                                                config::Report& report) {
  const std::shared_ptr<const config::Source> source = config::read_source(file, 0, report);
  if (!source) return {};
  Header header;
  std::vector<MeasuredCollective> results;
  const auto lines = static_cast<int>(std::count(source->text().begin(), source->text().end(), '\n')) + 1;
  for (int number = 1; number <= lines; ++number) {
    const std::string_view line = source->line(number);
    if (line.starts_with('#')) {
      read_comment(line, header);
    } else if (const auto result = read_result(line)) {
      results.push_back({cluster, 0, result->first, result->second / kMega, header.op});
    }
  }
  const std::string what = results.empty()
                               ? "no line with a size and a time; this is not the output of nccl-tests"
                               : "no line '#  Rank …' says how many GPUs took part; keep the whole output";
  if (results.empty() || header.ranks < 2) report.add({source, 0, 0}, "", what);
  for (MeasuredCollective& result : results) result.gpus = header.ranks;
  return report.empty() ? results : std::vector<MeasuredCollective>{};
}

}  // namespace trainsim::validation
