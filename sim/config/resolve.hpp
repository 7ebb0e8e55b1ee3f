// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/section.hpp"
#include "sim/config/value.hpp"

namespace trainsim::config {

/// The parts of an input that may be named instead of written out.
enum class Component { kModel, kCluster, kGpu, kIntraNode, kNic, kFabric };

/// /// What can stand for a component, in words: "the name of a GPU preset, a path or a mapping".
std::string expected_value(Component component);

/// Lays `overlay` on `base`, key by key and deep: what the overlay does not mention stays. A mapping over the
/// name of a part (gpu, intra_node, nic, fabric) changes that part; over any other value it replaces it.
Value merge(Value base, const Value& overlay);

/// Rewrites the shorthand `nic_bandwidth` of a cluster mapping as `nic: {bandwidth: …}`. Both at once are
/// reported below `path`, the cluster's field path.
void expand_nic_bandwidth(Value& cluster, const std::string& path, Report& report);

/// Replaces names and `extends` by what they stand for.
class Resolver {
 public:
  /// Problems of all files that get read go to `reading`, and so do the fields that nothing was found for.
  explicit Resolver(Reading& reading) : report_(reading.report), unread_(reading.unread) {}

  /// The mapping that `value` (a preset name, a path, or a mapping with or without `extends`) stands for, its
  /// named   /// parts included; nothing after reporting why there is none. A part that cannot be found stays
  /// as it is. `field` is the value's path in the configuration.
  std::optional<Value> resolve(const Value& value, Component component, const std::string& field);

 private:
  using Chain = std::vector<std::filesystem::path>;
  std::optional<Value> resolve_self(const Value& value, Component component, const std::string& field,
                                    Chain chain);
  std::optional<Value> load_named(const Value& name, Component component, const std::string& field,
                                  const std::string& expects, Chain chain);
  std::optional<std::filesystem::path> find_file(const Value& name, Component component,
                                                 const std::string& field);
  bool enter(const std::filesystem::path& file, const Value& name, const std::string& field, Chain& chain);
  void resolve_parts(Value& cluster, const std::string& field);

  Report& report_;
  std::vector<std::string>& unread_;
  int next_order_ = 1;
};

}  // namespace trainsim::config
