// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

namespace trainsim::hardware {

/// Directed rings through all of `cables.size()` GPUs that use only direct cables, and each direction of a
/// cable once: as many as a bounded search finds, as NCCL and RCCL look for. `cables[i][j]` says how many
/// cables lead from GPU i to GPU j. Of a full mesh of P GPUs it finds P - 1 rings for P of 2, 3, 5, 7 and 8,
/// and P - 2 for 4 and 6, where more do not exist (Tillson 1980). Each ring begins at GPU 0; empty when there
/// is none.
std::vector<std::vector<std::int64_t>> disjoint_rings(std::vector<std::vector<std::int64_t>> cables);

}  // namespace trainsim::hardware
