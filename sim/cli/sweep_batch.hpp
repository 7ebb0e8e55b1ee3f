// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "sim/sweep/sweep.hpp"

namespace trainsim::cli {

/// Points of a sweep that one process simulates.
using PointBatch = std::vector<std::size_t>;

/// Puts points together that differ in nothing but the section `run`, so that their step is simulated once.
/// Those of one step are dealt out to as many batches as there are workers, and no batch is so large that
/// much is lost with it when a sweep is interrupted. Batches come in the order of their first points, and
/// points ascend in each. REQUIRES: points ascend.
std::vector<PointBatch> batches_of(const sweep::Sweep& sweep, const std::vector<std::size_t>& points,
                                   std::size_t workers);

}  // namespace trainsim::cli
