// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/program/program.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// JSON whose objects keep the order in which they were written.
using Json = nlohmann::ordered_json;

/// The JSON result (docs/output.md).
Json to_tree(const Summary& summary);
/// Bytes by the names of their categories, with those that only models with experts have if it is one.
Json by_category(const program::MemoryByCategory& bytes, bool experts);

/// Indented text that ends in a newline; a file name that is not UTF-8 keeps what can be kept of it.
inline std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trainsim::report
