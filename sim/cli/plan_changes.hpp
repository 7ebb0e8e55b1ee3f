// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "sim/cli/variant.hpp"
#include "sim/engine/executor.hpp"
#include "sim/report/page/page.hpp"

namespace trainsim::cli {

/// A plan's step time without contention between transfers, and single changes of the plan that are legal,
/// each simulated the same way; the one with most tokens per second first. Kernels are left empty.
report::WhatIf plan_changes(const Subject& subject, const config::Experiment& experiment,
                            const engine::Progress& progress);

}  // namespace trainsim::cli
