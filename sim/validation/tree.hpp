// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "sim/config/value.hpp"

namespace trainsim::validation {

/// The value at a dotted path of a mapping, or null.
const config::Value* find_path(const config::Value& root, std::string_view path);

/// Sets the value at a dotted path, making the mappings on the way.
void set_path(config::Value& root, std::string_view path, config::Value value);

/// Removes keys without a value, at any depth: they say that something is not known.
void drop_nulls(config::Value& root);

/// The number at a path; nothing when there is none.
std::optional<double> number_at(const config::Value& root, std::string_view path);

/// The scalar's text at a path; "" when there is none.
std::string text_at(const config::Value& root, std::string_view path);

}  // namespace trainsim::validation
