// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/hardware/spec.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::search {

/// Another way to lay the ranks of a plan on the cluster.
struct PlacementChoice {
  /// "order tp-pp-dp", "one node of each leaf".
  std::string meaning;
  /// As for --set.
  std::vector<std::string> overrides;
};

/// The other orders of ranks that lay any of them elsewhere: axes of degree 1 have no place in an order.
std::vector<PlacementChoice> other_orders(const plan::ParallelPlan& plan);

/// The other nodes that a job of several nodes could take where the fabric has leaves, pods or groups of
/// routers, and can limit what passes between them: the first ones; half of each block; one of each; and the
/// first ones with neighbours in different blocks. Whether the cluster has these nodes is not checked.
std::vector<PlacementChoice> other_nodes(const plan::ParallelPlan& plan,
                                         const hardware::ClusterSpec& cluster);

/// Why other_nodes() is empty, as a sentence; empty if it is not.
std::string why_no_other_nodes(const plan::ParallelPlan& plan, const hardware::ClusterSpec& cluster);

}  // namespace trainsim::search
