// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/megatron_timers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostics.hpp"
#include "sim/base/text.hpp"

namespace trainsim::exchange {

namespace {

using Ranks = Measurement::Ranks;

constexpr std::string_view kForward = "forward-compute";
constexpr std::string_view kBackward = "backward-compute";
constexpr std::string_view kLoading = "batch-generator";
constexpr std::string_view kUpdate = "optimizer-inner-step";
/// What the timer "optimizer" holds besides the update and, with a distributed optimizer, the gathering of
/// parameters.
constexpr std::array<std::string_view, 5> kBesideUpdate = {
    "optimizer-copy-to-main-grad", "optimizer-unscale-and-check-inf", "optimizer-clip-main-grad",
    "optimizer-count-zeros", "optimizer-copy-main-to-model-params"};
constexpr std::string_view kOldTitle = "time (ms)";
constexpr Seconds kMilli = 1e-3;

/// One printing of all timers: seconds by timer and rank (or place of a range).
struct Printing {
  Ranks ranks = Ranks::kNamed;
  /// Whether the optimizer left out a step of those that the printing is of.
  bool skipped = false;
  std::map<std::string, std::map<std::int64_t, Seconds>, std::less<>> timers;
};

/// Numbers at the end of a line: "12.5" or "(12.5, 13)"; empty when there are none, or other text.
std::vector<double> numbers(std::string_view text) {
  std::string plain(text);
  for (char& letter : plain) {
    if (letter == '(' || letter == ')' || letter == ',') letter = ' ';
  }
  std::istringstream words(plain);
  std::vector<double> found;
  double number = 0;
  while (words >> number) found.push_back(number);
  return words.eof() ? found : std::vector<double>{};
}

/// Reads a log line by line.
class Log {
 public:
  void read(std::string_view line) {
    read_iteration(line);
    if (line.find("time across ranks (ms)") != std::string_view::npos) {
      begin(line.find("(min, max)") != std::string_view::npos ? Ranks::kRange : Ranks::kLongest);
    } else if (line.find("times across ranks (ms)") != std::string_view::npos) {
      begin(Ranks::kNamed);
    } else if (const std::size_t title = line.find(kOldTitle);
               title != std::string_view::npos &&
               trimmed(line.substr(title + kOldTitle.size())).starts_with("|")) {
      read_old(line.substr(title + kOldTitle.size()));
    } else if (open_) {
      open_ = read_timer(line);
    }
  }

  const std::vector<Printing>& printings() const { return printings_; }
  const std::optional<std::int64_t>& global_batch_size() const { return global_batch_size_; }

 private:
  void begin(Ranks ranks) {
    printings_.push_back({ranks, skipped_, {}});
    open_ = true;
  }

  /// The number behind a label of " iteration 10/ 100 | … | global batch size:   512 | …".
  static std::optional<double> labelled(std::string_view line, std::string_view label) {
    const std::size_t at = line.find(label);
    if (at == std::string_view::npos) return std::nullopt;
    const std::vector<double> found =
        numbers(line.substr(at + label.size(), line.find('|', at) - at - label.size()));
    return found.size() == 1 ? std::optional<double>(found[0]) : std::nullopt;
  }

  void read_iteration(std::string_view line) {
    constexpr double most = 1e9;
    if (const auto batch = labelled(line, "global batch size:"); batch && *batch >= 1 && *batch < most)
      global_batch_size_ = static_cast<std::int64_t>(*batch);
    if (const auto skipped = labelled(line, "number of skipped iterations:")) skipped_ = *skipped > 0;
  }

  /// " | forward-compute: 31.57 | backward-compute: 41.76 | …"
  void read_old(std::string_view line) {
    begin(Ranks::kLast);
    open_ = false;
    while (!line.empty()) {
      const std::size_t bar = std::min(line.find('|'), line.size());
      const std::string_view entry = line.substr(0, bar);
      line.remove_prefix(std::min(bar + 1, line.size()));
      const std::size_t colon = entry.rfind(':');
      if (colon == std::string_view::npos) continue;
      put(trimmed(entry.substr(0, colon)), 0, numbers(entry.substr(colon + 1)));
    }
  }

  /// "    forward-compute ......: (12.5, 13.1)", "  forward-compute:" or "     rank  3: 12.5"; whether it was
  /// one.
  bool read_timer(std::string_view line) {
    const std::size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) return false;
    std::string_view name = trimmed(line.substr(0, colon));
    const std::vector<double> found = numbers(line.substr(colon + 1));
    Printing& printing = printings_.back();
    if (printing.ranks != Ranks::kNamed) {
      name = name.substr(0, name.find_last_not_of(" .") + 1);
      if (found.size() != (printing.ranks == Ranks::kRange ? 2U : 1U)) return false;
      for (std::size_t i = 0; i < found.size(); ++i) put(name, static_cast<std::int64_t>(i), {found[i]});
      return true;
    }
    if (name.starts_with("rank")) {
      const std::vector<double> rank = numbers(name.substr(4));
      constexpr double most = 1e9;
      const bool legal = rank.size() == 1 && rank[0] >= 0 && rank[0] < most && rank[0] == std::trunc(rank[0]);
      if (!legal || found.size() != 1) return false;
      put(timer_, static_cast<std::int64_t>(rank[0]), found);
      return true;
    }
    timer_ = name;
    return trimmed(line.substr(colon + 1)).empty();
  }

  void put(std::string_view timer, std::int64_t rank, const std::vector<double>& milliseconds) {
    if (milliseconds.size() == 1 && milliseconds[0] > 0)
      printings_.back().timers[std::string(timer)][rank] = milliseconds[0] * kMilli;
  }

  std::vector<Printing> printings_;
  std::optional<std::int64_t> global_batch_size_;
  /// The timer whose ranks follow.
  std::string timer_;
  bool open_ = false;
  bool skipped_ = false;
};

/// Whether a printing has both passes, of the same ranks.
bool is_complete(const Printing& printing) {
  const auto forward = printing.timers.find(kForward);
  const auto backward = printing.timers.find(kBackward);
  if (forward == printing.timers.end() || backward == printing.timers.end()) return false;
  return forward->second.size() == backward->second.size() &&
         std::equal(forward->second.begin(), forward->second.end(), backward->second.begin(),
                    [](const auto& a, const auto& b) { return a.first == b.first; });
}

/// A timer of one rank, 0 where it is not printed.
Seconds timer_of(const Printing& printing, std::string_view name, std::int64_t rank) {
  const auto timer = printing.timers.find(name);
  if (timer == printing.timers.end()) return 0;
  const auto time = timer->second.find(rank);
  return time == timer->second.end() ? 0 : time->second;
}

/// The optimizer's step on one rank without gathering parameters; 0 where it is not known.
Seconds optimizer_time(const Printing& printing, std::int64_t rank) {
  if (printing.skipped) return 0;
  Seconds sum = timer_of(printing, kUpdate, rank);
  // Versions that print all timers in a line may have none of the update, and have none of gathering inside
  // of the whole.
  if (sum == 0) return printing.ranks == Ranks::kLast ? timer_of(printing, "optimizer", rank) : 0;
  for (const std::string_view part : kBesideUpdate) sum += timer_of(printing, part, rank);
  return sum;
}

/// In the optimizer ranks wait for each other's part of the gradients' norm; the one that waits least tells
/// what it takes. Nobody knows where only the longest time is printed.
void take_shortest_optimizer(Measurement& measured) {
  Seconds shortest = 0;
  for (const auto& [rank, times] : measured.times) {
    if (times.optimizer > 0 && (shortest == 0 || times.optimizer < shortest)) shortest = times.optimizer;
  }
  if (measured.ranks == Ranks::kLongest) shortest = 0;
  for (auto& [rank, times] : measured.times) times.optimizer = shortest;
}

/// What loading data takes of the forward passes, in percent; 0 when unknown.
int loading_percent(const Printing& printing) {
  const auto found = printing.timers.find(kLoading);
  if (found == printing.timers.end()) return 0;
  Seconds loading = 0;
  Seconds forward = 0;
  for (const auto& [rank, time] : found->second) loading += time;
  for (const auto& [rank, time] : printing.timers.find(kForward)->second) forward += time;
  constexpr double percent = 100;
  return static_cast<int>(std::lround(percent * loading / forward));
}

}  // namespace

bool is_timer_log(const std::string& text) {
  if (text.starts_with("#!")) return false;
  return text.find("across ranks (ms):") != std::string::npos ||
         text.find("time (ms) |") != std::string::npos ||
         text.find("elapsed time per iteration (ms):") != std::string::npos;
}

Measurement read_timer_log(const std::string& text) {
  Log log;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) log.read(line);
  std::vector<Printing> printings;
  for (const Printing& printing : log.printings()) {
    if (!is_complete(printing)) continue;
    // Should the way of printing change (files put together), the last one counts.
    if (!printings.empty() && printings.back().ranks != printing.ranks) printings.clear();
    printings.push_back(printing);
  }
  if (printings.empty()) {
    throw InputError(
        "error: no times of forward-compute and backward-compute; Megatron-LM prints them with "
        "--timing-log-level 2");
  }
  if (printings.size() > 1) printings.erase(printings.begin());
  Measurement measured;
  measured.ranks = printings.back().ranks;
  measured.global_batch_size = log.global_batch_size();
  for (const auto& [rank, time] : printings.back().timers.find(kForward)->second) {
    std::vector<StepTimes> steps;
    for (const Printing& printing : printings) {
      const auto& forward = printing.timers.find(kForward)->second;
      const auto& backward = printing.timers.find(kBackward)->second;
      if (forward.count(rank) == 0) continue;
      steps.push_back({forward.at(rank), backward.at(rank), optimizer_time(printing, rank)});
    }
    measured.times[rank] = median(steps);
  }
  take_shortest_optimizer(measured);
  measured.what = "forward-compute and backward-compute";
  measured.samples = std::to_string(printings.size()) + (printings.size() == 1 ? " report" : " reports");
  if (const int percent = loading_percent(printings.back()); percent > 1) {
    measured.notes.push_back("data is loaded as slowly as in the measured run: " + std::to_string(percent) +
                             " % of forward-compute is batch-generator");
  }
  return measured;
}

}  // namespace trainsim::exchange
