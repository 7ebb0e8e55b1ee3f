// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <vector>

#include "sim/validation/row.hpp"

namespace trainsim::validation {

/// Files with an extension ("yaml", "csv") in a folder, sorted by name; the path itself if it is such a file.
/// Throws InputError when there is no such file or folder.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& path, const std::string& extension);

/// Reads the rows of a file: a list of rows, or a mapping with `rows`, `defaults` (laid under every row) and
/// `source`. A malformed row is reported in `set.problems` and left out; the others go on.
void read_rows(const std::filesystem::path& file, RowSet& set);

}  // namespace trainsim::validation
