// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>

#include "sim/cli/variant.hpp"
#include "sim/report/search.hpp"

namespace trainsim::cli {

/// Simulates a configuration and every legal plan one step away from it, in `workers` processes at a time.
/// `progress` gets a share in [0, 1]. Throws InputError for a configuration that can't be compared with
/// others.
report::NeighbourReport simulate_neighbours(const Subject& subject, std::size_t workers,
                                            const std::function<void(double)>& progress);

}  // namespace trainsim::cli
