// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "sim/folding/world.hpp"

namespace trainsim::folding {

/// Classes of things that behave alike: class numbers 0 … count-1 in order of first appearance.
struct Classes {
  std::vector<std::uint32_t> of;
  /// First member of each class, and number of members.
  std::vector<std::uint32_t> representative;
  std::vector<std::uint32_t> size;
  std::size_t count() const { return representative.size(); }
};

/// An equitable partition of a world: ranks of a class have the same program, sit in groups of the same
/// classes and have pipeline channels of the same classes; groups of a class have as many members and flows
/// of each class; flows of a class cross links of the same classes in the same order; and links of a class
/// are crossed by the same number of flows of each class. Max-min fair sharing then gives all flows of a
/// class the same rate at every moment, and all ranks of a class the same timeline, so simulating one of each
/// is exact (docs/architecture.md, "Folding").
struct Partition {
  Classes ranks;
  Classes groups;
  Classes flows;
  /// Links that no flow crosses share one class.
  Classes links;
};

/// The coarsest equitable partition, by colour refinement (Weisfeiler and Leman 1968). Ranks begin apart when
/// their stage or speed differs. With `fold` false every rank is a class of its own, and with
/// `separate_flows` every flow too.
Partition partition(const World& world, const plan::ParallelPlan& plan, const hardware::Topology& topology,
                    bool fold, bool separate_flows = false);

}  // namespace trainsim::folding
