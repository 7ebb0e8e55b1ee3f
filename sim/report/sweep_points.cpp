// SPDX-License-Identifier: Apache-2.0
#include "sim/report/sweep_points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "sim/report/format.hpp"
#include "sim/sweep/knee.hpp"
#include "sim/sweep/row_axes.hpp"

namespace trainsim::report {

namespace {

using sweep::Cell;
using sweep::Row;

/// Points over one of the sizes that make up the batch.
struct BatchSweep {
  std::string key;
  /// Valid rows by size.
  std::vector<const Row*> rows;
  /// Whether there are others.
  bool any_illegal = false;
};

double size_in(const BatchSweep& sweep, const Row& row) {
  return number_in(row, sweep.key == "plan.micro_batch_size" ? "micro_batch_size" : "global_batch_size");
}

/// "plan.micro_batch_size = 2", or "m = 48 micro-batches (plan.global_batch_size = 768)".
std::string size_text(const BatchSweep& sweep, const Row& row) {
  std::string value = sweep.key + " = " + text_in(row, sweep.key);
  if (sweep.key == "plan.micro_batch_size") return value;
  const double unit = number_in(row, "micro_batch_size") * number_in(row, "data_parallel");
  const std::int64_t count = std::llround(number_in(row, "global_batch_size") / unit);
  return "m = " + std::to_string(count) + " micro-batches (" + value + ")";
}

/// Of the rows that fit, where the knee is; null if there is none.
const Row* knee_of(const std::vector<const Row*>& fitting, const std::vector<sweep::Trial>& trials) {
  const std::optional<sweep::Trial> knee = sweep::find_knee(trials);
  if (!knee) return nullptr;
  const auto at = std::find_if(trials.begin(), trials.end(),
                               [&knee](const sweep::Trial& trial) { return trial.size == knee->size; });
  return fitting[static_cast<std::size_t>(at - trials.begin())];
}

/// The knee's row, and a sentence on it; of fewer than two points that fit nothing.
std::pair<const Row*, std::string> find_knee_in(const BatchSweep& batch) {
  std::vector<const Row*> fitting;
  std::vector<sweep::Trial> trials;
  for (const Row* row : batch.rows) {
    if (!fits(*row)) continue;
    fitting.push_back(row);
    trials.push_back({size_in(batch, *row), rate(*row)});
  }
  if (trials.size() < 2) return {nullptr, ""};
  if (const Row* knee = knee_of(fitting, trials)) {
    return {knee, "Beyond " + size_text(batch, *knee) + " a doubling gains under " +
                      number(100 * sweep::kSmallGain, 1) + " % in tokens/s per GPU."};
  }
  const double gain = sweep::gain_per_doubling(trials[trials.size() - 2], trials.back());
  return {nullptr, "No knee up to " + size_text(batch, *fitting.back()) +
                       ", the largest here that fits: a doubling still gains " + percent(gain) +
                       " in tokens/s per GPU."};
}

/// What keeps a row that does not fit from it: "needs 2.50 GiB more".
std::string lack(const Row& row) {
  const double headroom = number_in(row, "memory_headroom_bytes");
  // What fits into the GPU may offload more than the host holds.
  if (headroom >= 0) return "offloads more than the host holds";
  return "needs " + gib(static_cast<Bytes>(-headroom)) + " more than a GPU has";
}

std::string memory_note(const BatchSweep& batch) {
  if (batch.rows.empty()) return "";
  const auto largest =
      std::find_if(batch.rows.rbegin(), batch.rows.rend(), [](const Row* row) { return fits(*row); });
  if (largest == batch.rows.rend()) {
    const Row& smallest = *batch.rows.front();
    return "Nothing fits into memory: even " + size_text(batch, smallest) + " " + lack(smallest) + ".";
  }
  const std::string most = size_text(batch, **largest);
  if (largest == batch.rows.rbegin())
    return "Memory is no limit here: " + most + ", the largest" +
           (batch.any_illegal ? " that is legal" : "") + ", leaves " +
           gib(static_cast<Bytes>(number_in(**largest, "memory_headroom_bytes"))) + ".";
  const Row& next = **std::prev(largest);
  return "Memory limit: " + most + " is the largest that fits; " + size_text(batch, next) + " " + lack(next) +
         ".";
}

}  // namespace

double number_in(const Row& row, std::string_view column) {
  const Cell* cell = find(row, column);
  return cell == nullptr ? 0 : std::strtod(cell->text.c_str(), nullptr);
}

std::string text_in(const Row& row, std::string_view column) {
  const Cell* cell = find(row, column);
  return cell == nullptr ? "" : cell->text;
}

bool is_valid(const Row& row) {
  return text_in(row, sweep::kError).empty();
}

bool fits(const Row& row) {
  return is_valid(row) && text_in(row, "fits") == "true";
}

double rate(const Row& row) {
  return number_in(row, "tokens_per_s_per_gpu");
}

std::string point_text(const Row& row) {
  std::string text;
  for (const std::string& key : sweep::keys_of(row)) {
    if (!text.empty()) text += ", ";
    text += key;
    text += "=" + text_in(row, key);
  }
  return text;
}

bool is_batch_size(const std::string& key) {
  constexpr std::array<std::string_view, 3> sizes = {"plan.micro_batch_size", "plan.global_batch_size",
                                                     "plan.gradient_accumulation"};
  return std::find(sizes.begin(), sizes.end(), key) != sizes.end();
}

BatchCurve batch_curve(const std::string& key, const std::vector<const Row*>& rows) {
  BatchSweep batch{key, {}, false};
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(batch.rows),
               [](const Row* row) { return is_valid(*row); });
  batch.any_illegal = batch.rows.size() < rows.size();
  std::sort(batch.rows.begin(), batch.rows.end(),
            [&batch](const Row* a, const Row* b) { return size_in(batch, *a) < size_in(batch, *b); });
  const auto [knee, sentence] = find_knee_in(batch);
  BatchCurve curve{std::nullopt, {sentence, memory_note(batch)}};
  if (knee != nullptr)
    curve.knee = static_cast<std::size_t>(std::find(rows.begin(), rows.end(), knee) - rows.begin());
  std::erase(curve.sentences, "");
  return curve;
}

}  // namespace trainsim::report
