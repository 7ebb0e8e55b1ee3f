// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace trainsim::exchange {

/// Parts of the input that are files of their own.
const std::vector<std::string>& schema_kinds();

/// A JSON Schema (draft-07, the one that editors' YAML support is built on) of a kind of file: "config",
/// "model", "cluster", "gpu", "node", "nic" or "fabric". Keys, bounds, words and defaults are those of the
/// readers, descriptions those of docs/config.md. REQUIRES: one of schema_kinds().
std::string json_schema(const std::string& kind);

/// What docs/config.md says of a key ("plan.tensor_parallel"); "" if nothing.
std::string documented(const std::string& path);

}  // namespace trainsim::exchange
