// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trainsim::cli {

/// What the process ends with (docs/output.md).
enum ExitCode : int {
  kDone = 0,
  /// Anything that is neither of the others, such as a full disk or a mistake of the program itself.
  kFailure = 1,
  /// Bad configuration or command line.
  kBadInput = 2,
  /// --require-fit was given and the plan does not fit.
  kDoesNotFit = 3,
  /// An --assert does not hold.
  kAssertionFailed = 4,
};

}  // namespace trainsim::cli
