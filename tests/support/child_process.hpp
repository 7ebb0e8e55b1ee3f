// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

namespace trainsim::tests {

/// Runs `work` in a child process and returns the numbers that it returns. SimGrid can run only once in a
/// process, so a test that needs several runs makes them here. Throws std::runtime_error when the child
/// fails.
std::vector<double> in_child(const std::function<std::vector<double>()>& work);

}  // namespace trainsim::tests
