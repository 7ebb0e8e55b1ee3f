// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/sweep/row.hpp"

namespace trainsim::sweep {

/// A file with rows of a shard.
struct RowFile {
  std::string name;
  std::string text;
};

/// Puts the rows of all shards in the order of points, as a sweep in one piece would have written them. The
/// same row may be there several times. Throws InputError when rows are missing or torn, or when files are
/// of different sweeps or formats.
RowLines merge(const std::vector<RowFile>& files);

/// The text of a file with these rows.
std::string file_text(const RowLines& rows);

}  // namespace trainsim::sweep
