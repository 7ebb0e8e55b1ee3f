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

/// An equitable partition of a world: members of a class have the same programme, sit in groups of the same
/// classes, and their flows cross links of the same classes in the same order; and every link of a class is crossed
/// by the same number of flows of each class. Max-min fair sharing then gives all members of a class the same rate
/// at every moment, so simulating one of each is exact (docs/architecture.md, "Folding").
struct Partition {
  Classes ranks;
  Classes groups;
  Classes flows;
  /// Links that no flow crosses share one class.
  Classes links;
};

/// The coarsest equitable partition, by colour refinement (Weisfeiler and Leman 1968). Ranks begin apart when their
/// stage or speed differs. With `fold` false every rank is a class of its own.
Partition partition(const World& world, const plan::ParallelPlan& plan, const hardware::Topology& topology,
                    bool fold);

}  // namespace trainsim::folding
