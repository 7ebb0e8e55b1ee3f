// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace trainsim::cli {

/// What `trainsim topology` was asked for.
struct TopologyRequest {
  std::string cluster;
  std::vector<std::string> overrides;
  /// 0 = as many as show every level of the fabric.
  std::int64_t gpus = 0;
  bool json = false;
  /// Where a drawing goes, .svg or .dot; empty = nowhere.
  std::string picture;
};

/// The text of the summary; draws the picture on the way. Throws InputError.
std::string describe_topology(const TopologyRequest& request);

}  // namespace trainsim::cli
