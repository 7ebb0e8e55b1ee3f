// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/exchange/kineto_events.hpp"
#include "sim/exchange/measured.hpp"

namespace trainsim::exchange {

/// Whether a text is a trace of PyTorch's profiler (Kineto), as far as its beginning says.
bool is_kineto_trace(const std::string& text);

/// Reads the times of forward and backward of one rank from a trace of CPU and GPU activities. A kernel
/// belongs to the backward if the host launched it inside an operation of the autograd engine; to the forward
/// if it launched it elsewhere before the last backward operation of the step; what comes later is gradient
/// exchange and optimizer. A pass takes as long as at least one of its kernels runs. Collectives of `inner`
/// groups (by the group's description), those that the plan has, count; others do not. Steps are those of
/// ProfilerStep#N; of several the median counts. Throws InputError, without file name.
Measurement read_kineto_trace(const std::string& text, const InnerGroups& inner);

}  // namespace trainsim::exchange
