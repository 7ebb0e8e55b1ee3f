// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/row.hpp"
#include "sim/sweep/row_axes.hpp"

namespace trainsim::report {

/// Points along one axis, all others being as in the best point.
struct SweepCurve {
  /// Rows by position of the axis.
  std::vector<std::size_t> rows;
  std::optional<std::size_t> knee;
  std::vector<std::string> sentences;
};

/// A Pareto front: rows that fit, the fastest first.
struct SweepFront {
  std::vector<std::size_t> rows;
  std::string sentence;
};

/// What is to be seen in the rows of a sweep; numbers of rows are places in the list.
struct SweepView {
  std::vector<sweep::RowAxis> axes;
  /// Most tokens per second and GPU of those that fit, or else of those that are legal; nothing without
  /// those.
  std::optional<std::size_t> best;
  /// By axis; none without a best point.
  std::vector<SweepCurve> curves;
  /// Whether steps have different numbers of tokens, so that times and costs are those of tokens.
  bool per_token = false;
  /// Time against memory of a GPU.
  SweepFront memory;
  /// Time against GPU-hours, where points have different numbers of GPUs.
  std::optional<SweepFront> cost;
  std::string headline;
  /// Knees and memory limits of the curves over sizes of the batch.
  std::vector<std::string> notes;
};

/// Seconds of a step, or of a million tokens.
double time_of(const sweep::Row& row, bool per_token);
/// GPU-hours of a step, or of 10^9 tokens.
double gpu_hours_of(const sweep::Row& row, bool per_token);

SweepView view_of(const std::vector<sweep::Row>& rows);

}  // namespace trainsim::report
