// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "sim/config/readers.hpp"
#include "sim/config/section.hpp"
#include "sim/hardware/spec.hpp"

namespace trainsim::config {

/// A latency or another time that may be 0.
inline constexpr NumberRange kTime = {0.0, 1e6, true};

/// Reads `cluster.intra_node`: what GPUs of a node are connected by.
void read_intra_node(Section& cluster, hardware::ClusterSpec& spec);
/// A link that only clusters with a network need; nothing is known of it without one. `rings`: collectives
/// run over it.
hardware::LinkSpec read_network_link(std::optional<Section> section, bool rings);
/// Reads `cluster.fabric`: the switches between nodes. NICs must have been read before.
void read_fabric(Section& cluster, hardware::ClusterSpec& spec, bool required);
/// Reads `cluster.faults`.
void read_faults(Section& cluster, hardware::ClusterSpec& spec);

}  // namespace trainsim::config
