// SPDX-License-Identifier: Apache-2.0
#include "sim/program/program.hpp"

#include <algorithm>

#include "sim/program/traffic.hpp"

namespace trainsim::program {

namespace {

/// Looks an enumerator's name up in a table written in the order of the enumeration.
template <std::size_t N, class Enum>
const char* name_in(const std::array<const char*, N>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

constexpr std::array<const char*, kKernelKinds> kKernelNames = {"matmul", "attention", "memory", "optimizer",
                                                                "profiled"};
constexpr std::array<const char*, kStreams> kStreamNames = {"compute", "tensor",    "send",   "data",
                                                            "to_host", "from_host", "context"};
constexpr std::array<const char*, kGroupKinds> kGroupNames = {"tensor", "data",    "embedding",
                                                              "shard",  "replica", "context"};
constexpr std::array<const char*, kTrafficKinds> kTrafficNames = {"tensor", "data", "embedding", "pipeline",
                                                                  "context"};
constexpr std::array<const char*, 6> kCollectiveNames = {"all_reduce", "all_gather", "reduce_scatter",
                                                         "broadcast",  "all_to_all", "ring_shift"};
constexpr std::array<const char*, kCauses> kCauseNames = {"forward",
                                                          "backward",
                                                          "recompute",
                                                          "optimizer",
                                                          "tensor_communication",
                                                          "pipeline_communication",
                                                          "data_communication",
                                                          "embedding_communication",
                                                          "bubble",
                                                          "imbalance",
                                                          "launch",
                                                          "offload",
                                                          "context_communication"};
constexpr std::array<const char*, kMemoryCategories> kMemoryNames = {
    "parameters",    "gradients", "main_gradients",        "optimizer_state", "activations",
    "recomputation", "logits",    "communication_buffers", "temporary"};

}  // namespace

const char* to_string(KernelKind kind) {
  return name_in(kKernelNames, kind);
}
const char* to_string(Stream stream) {
  return name_in(kStreamNames, stream);
}
const char* to_string(GroupKind kind) {
  return name_in(kGroupNames, kind);
}
const char* to_string(TrafficKind kind) {
  return name_in(kTrafficNames, kind);
}
const char* to_string(CollectiveOp op) {
  return name_in(kCollectiveNames, op);
}
const char* to_string(Cause cause) {
  return name_in(kCauseNames, cause);
}
const char* to_string(MemoryCategory category) {
  return name_in(kMemoryNames, category);
}

Place Program::place_of(Stream s, std::uint32_t instruction) const {
  const std::vector<Place>& marks = places[static_cast<std::size_t>(s)];
  const auto after =
      std::upper_bound(marks.begin(), marks.end(), instruction,
                       [](std::uint32_t index, const Place& place) { return index < place.first; });
  return after == marks.begin() ? Place{} : *(after - 1);
}

}  // namespace trainsim::program
