// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/sweep_point.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/base/hash.hpp"
#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/cli/training.hpp"
#include "sim/config/experiment.hpp"
#include "sim/report/sweep_rows.hpp"

namespace trainsim::cli {

namespace {

using sweep::Cell;
using sweep::CellKind;
using sweep::Row;

/// Between points, cells, and the parts of a cell, of a worker's text; no result contains them.
constexpr char kPointEnd = '\x1d';
constexpr char kCellEnd = '\x1e';
constexpr char kPartEnd = '\x1f';
/// First byte of a worker's text.
constexpr char kResults = 'r';
constexpr char kIllegal = 'e';

/// Calls what --set is called in messages by the option or file that it came from.
std::string with_own_origin(std::string text, const sweep::Sweep& sweep) {
  const std::string generic = "--set ";
  const std::vector<std::string> origins = sweep.origins();
  for (std::size_t k = 0; k < origins.size(); ++k) {
    std::string found = generic;
    found += sweep.keys()[k];
    found += "=";
    for (std::size_t at = text.find(found); at != std::string::npos; at = text.find(found, at + 1))
      text.replace(at, generic.size(), origins[k]);
  }
  return text;
}

/// The causes among the lines of an InputError, on one line.
std::string causes(const std::string& text) {
  constexpr std::string_view mark = "error: ";
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(mark);
    const bool counts = line.starts_with("(");
    if (at == std::string::npos && !counts) continue;
    if (!all.empty()) all += "; ";
    all += at == std::string::npos ? line : line.substr(at + mark.size());
  }
  if (all.empty()) all = text;
  std::replace_if(
      all.begin(), all.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return all;
}

bool names_component(const std::string& override_text) {
  return override_text.starts_with("model") || override_text.starts_with("cluster");
}

std::string joined_text(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += part;
    text += kCellEnd;
  }
  return text;
}

/// The files that the points' models and clusters come from, as one text.
std::string component_texts(const SweepBase& base, const sweep::Sweep& sweep) {
  const bool varied = std::any_of(sweep.keys().begin(), sweep.keys().end(), names_component);
  std::set<std::vector<std::string>> seen;
  std::string text;
  for (std::size_t point = 0; varied && point < sweep.size(); ++point) {
    std::vector<std::string> overrides = sweep.overrides(point);
    std::erase_if(overrides,
                  [](const std::string& override_text) { return !names_component(override_text); });
    if (!seen.insert(overrides).second) continue;
    try {
      text += config::resolved_text(base.subject.name, joined(base.subject.overrides, overrides));
    } catch (const InputError& error) {
      text += error.what();
    }
  }
  return text;
}

[[noreturn]] void fail_no_effect(const std::string& set, const std::string& varied) {
  throw InputError("trainsim: error: " + varied + " is varied, so that --set " + set +
                   " would have no effect; remove one of them");
}

/// A point that can be simulated, and which of its batch it is.
struct LegalPoint {
  std::size_t place = 0;
  std::optional<training::TrainingSpec> run;
};

/// Points of one step.
struct LoadedBatch {
  config::Experiment step;
  std::vector<LegalPoint> legal;
  /// What results_of_batch() reads, by point; empty until it is known.
  std::vector<std::string> texts;
};

LoadedBatch load_batch(const SweepBase& base, const sweep::Sweep& sweep, const PointBatch& points) {
  LoadedBatch batch;
  batch.texts.resize(points.size());
  batch.legal.reserve(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    try {
      batch.step =
          config::load(base.subject.name, joined(base.subject.overrides, sweep.overrides(points[i])));
      batch.legal.push_back({i, batch.step.run});
    } catch (const InputError& error) {
      batch.texts[i] = kIllegal + causes(error.what());
    }
  }
  return batch;
}

std::string text_of(const report::Summary& summary) {
  std::string text(1, kResults);
  for (const Cell& cell : report::scalar_cells(summary)) {
    text += cell.column;
    text += kPartEnd;
    text += std::to_string(static_cast<int>(cell.kind));
    text += kPartEnd;
    text += cell.text;
    text += kCellEnd;
  }
  return text;
}

/// Simulates the step, and a step of every batch size that any of the points needs, once for all of them.
void add_results(LoadedBatch& batch, bool fold, std::size_t workers) {
  config::Experiment& experiment = batch.step;
  choose_recomputation(experiment);
  RunNeeds needs;
  for (const LegalPoint& point : batch.legal) {
    experiment.run = point.run;
    add_needs(experiment, needs);
  }
  const RunSteps steps = simulate_run_steps(experiment, needs, {fold, workers});
  const report::Summary step = simulate(experiment, fold, {});
  for (const LegalPoint& point : batch.legal) {
    experiment.run = point.run;
    try {
      report::Summary summary = step;
      add_training_run(experiment, steps, summary);
      batch.texts[point.place] = text_of(summary);
    } catch (const InputError& error) {
      batch.texts[point.place] = kIllegal + causes(error.what());
    }
  }
}

PointResult result_of_point(const std::string& text) {
  PointResult result;
  if (!text.starts_with(kResults)) {
    result.error = text.substr(1);
    return result;
  }
  std::istringstream cells(text.substr(1));
  for (std::string part; std::getline(cells, part, kCellEnd);) {
    std::istringstream parts(part);
    Cell cell;
    std::string kind;
    std::getline(parts, cell.column, kPartEnd);
    std::getline(parts, kind, kPartEnd);
    std::getline(parts, cell.text, kPartEnd);
    cell.kind = static_cast<CellKind>(kind.front() - '0');
    result.results.push_back(std::move(cell));
  }
  return result;
}

/// Columns of results, without any.
Row empty_results() {
  Row row = report::scalar_cells({});
  for (Cell& cell : row) cell = {cell.column, "", CellKind::kNone};
  return row;
}

}  // namespace

void check_sweep(const SweepBase& base, const sweep::Sweep& sweep) {
  for (const std::string& set : base.subject.overrides) {
    const std::string key = set.substr(0, set.find('='));
    for (const std::string& varied : sweep.keys()) {
      if (key == varied || key.starts_with(varied + ".")) fail_no_effect(key, varied);
    }
  }
  config::resolved_text(base.subject.name, base.subject.overrides);
  for (const std::size_t point : sweep.points_with_all_keys()) {
    try {
      config::load(base.subject.name, joined(base.subject.overrides, sweep.overrides(point)));
    } catch (const UnknownKeyError& error) {
      throw UnknownKeyError(with_own_origin(error.what(), sweep));
    } catch (const InputError&) {
      // A point that is not legal becomes a row that says why.
    }
  }
}

std::string fingerprint_of(const SweepBase& base, const sweep::Sweep& sweep) {
  std::uint64_t hash = fingerprint(TRAINSIM_VERSION, base.fold ? 1 : 0);
  hash = fingerprint(config::resolved_text(base.subject.name, base.subject.overrides), hash);
  hash = fingerprint(component_texts(base, sweep), hash);
  hash = fingerprint(joined_text(sweep.keys()), hash);
  for (std::size_t point = 0; point < sweep.size(); ++point)
    hash = fingerprint(joined_text(sweep.overrides(point)), hash);
  std::array<char, 24> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  return digits.data();
}

std::string simulate_batch(const SweepBase& base, const sweep::Sweep& sweep, const PointBatch& points,
                           std::size_t workers) {
  LoadedBatch batch = load_batch(base, sweep, points);
  if (!batch.legal.empty()) {
    try {
      add_results(batch, base.fold, workers);
    } catch (const InputError& error) {
      for (const LegalPoint& point : batch.legal) batch.texts[point.place] = kIllegal + causes(error.what());
    }
  }
  std::string text;
  for (const std::string& each : batch.texts) {
    text += each;
    text += kPointEnd;
  }
  return text;
}

std::vector<PointResult> results_of_batch(const std::string& text) {
  std::vector<PointResult> results;
  std::istringstream points(text);
  for (std::string point; std::getline(points, point, kPointEnd);) results.push_back(result_of_point(point));
  return results;
}

Row row_of(const sweep::Sweep& sweep, const PointResult& result, const sweep::Identity& identity) {
  const std::vector<std::optional<std::string>> values = sweep.values(identity.point - 1);
  Row row;
  row.reserve(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::string& key = sweep.keys()[k];
    row.push_back(values[k] ? sweep::value_cell(key, *values[k]) : Cell{key, "", CellKind::kNone});
  }
  for (const Cell& cell : result.results.empty() ? empty_results() : result.results) {
    if (find(row, cell.column) == nullptr) row.push_back(cell);
  }
  row.push_back(
      {std::string(sweep::kError), result.error, result.error.empty() ? CellKind::kNone : CellKind::kText});
  for (Cell& cell : sweep::identity_cells(identity)) row.push_back(std::move(cell));
  return row;
}

}  // namespace trainsim::cli
