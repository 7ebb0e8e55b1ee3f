// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/cli/options.hpp"

namespace trainsim::cli {

/// Does what the command line asks for; returns the exit code. Throws InputError for bad input.
int execute(const Options& options);

}  // namespace trainsim::cli
