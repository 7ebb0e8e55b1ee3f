// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/exchange/measured.hpp"

namespace trainsim::exchange {

/// Whether a text looks like the log of a run of Megatron-LM with timers.
bool is_timer_log(const std::string& text);

/// Reads what Megatron-LM's timers say of forward-compute and backward-compute, as --timing-log-level 2
/// prints them (megatron/core/timers.py): "(min, max) time across ranks (ms):", "max time across ranks (ms):"
/// and "times across ranks (ms):" with a line for each timer or rank, and the "time (ms) |
/// forward-compute: 31.57 | …" of before 2023. Each is the time of a whole iteration. The first report counts
/// only if there is no other, because it has the warm-up. Throws InputError, without file name, when there is
/// none.
Measurement read_timer_log(const std::string& text);

}  // namespace trainsim::exchange
