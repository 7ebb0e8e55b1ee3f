// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/program/job.hpp"
#include "sim/program/traffic.hpp"

namespace trainsim::engine {

/// Counts what the programs of a job send in a step, and over which links. Nothing is simulated.
program::Traffic count_traffic(const program::Job& job);

}  // namespace trainsim::engine
