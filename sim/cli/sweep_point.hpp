// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "sim/cli/sweep_batch.hpp"
#include "sim/cli/variant.hpp"
#include "sim/sweep/row.hpp"
#include "sim/sweep/sweep.hpp"

namespace trainsim::cli {

/// What every point of a sweep starts from.
struct SweepBase {
  Subject subject;
  bool fold = true;
};

/// Throws InputError when the configuration can't be read, when a varied key is one that no configuration
/// has, or one that --set sets too.
void check_sweep(const SweepBase& base, const sweep::Sweep& sweep);

/// 16 hexadecimal digits that change with anything that decides about rows: configuration and presets, --set,
/// what is varied, the program's version.
std::string fingerprint_of(const SweepBase& base, const sweep::Sweep& sweep);

/// Simulates points that differ in nothing but the section `run`; text for results_of_batch(). What makes a
/// point illegal becomes part of the text. `workers` simulate the batch sizes of ramps.
std::string simulate_batch(const SweepBase& base, const sweep::Sweep& sweep, const PointBatch& points,
                           std::size_t workers);

/// How a point ended.
struct PointResult {
  /// Results, in the order of the columns; empty when there are none.
  sweep::Row results;
  /// Why there are none, on one line.
  std::string error;
};

/// Reads what simulate_batch() returned: a result for each point.
std::vector<PointResult> results_of_batch(const std::string& text);

/// The whole row of a point: varied values, results, error, identity. A result that is varied itself, such as
/// gpus, is there once.
sweep::Row row_of(const sweep::Sweep& sweep, const PointResult& result, const sweep::Identity& identity);

}  // namespace trainsim::cli
