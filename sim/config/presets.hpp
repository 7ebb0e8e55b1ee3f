// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trainsim::config {

/// Whether `text` names a file rather than a preset: it has a '/' or ends in .yaml or .yml.
bool is_path(std::string_view text);

/// The file of a preset in `folder`, or an empty path when `name` is no preset name or there is no such file.
std::filesystem::path preset_file(const std::filesystem::path& folder, const std::string& name);

/// Names of all presets in `folder`, sorted.
std::vector<std::string> preset_names(const std::filesystem::path& folder);

/// What to try instead of a preset that `folder` does not have: the name that is probably meant, else all of
/// them.
std::string preset_hint(const std::filesystem::path& folder, const std::string& name);

}  // namespace trainsim::config
