// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <vector>

#include "sim/config/report.hpp"
#include "sim/hardware/spec.hpp"

namespace trainsim::config {

/// What an NCCL topology (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE) says of a node. Bandwidths are those of data
/// sheets.
struct NcclTopology {
  std::vector<hardware::NodeLink> links;
  std::int64_t gpus = 0;
  std::int64_t nics = 0;
  std::int64_t cpus = 0;
};

/// Reads such a file: PCIe links with their speed and width, NVLinks (by generation) to switches and to other
/// GPUs, AMD's xGMI links, and network cards. CPUs are connected each with each by `socket_bandwidth`.
/// Problems are reported with their line.
NcclTopology read_nccl_topology(const std::filesystem::path& file, BytesPerSecond socket_bandwidth,
                                Report& report);

}  // namespace trainsim::config
