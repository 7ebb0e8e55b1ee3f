// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/judge.hpp"

#include <spdlog/spdlog.h>

#include "sim/cli/exit_code.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::cli {

int judge(const report::Summary& summary, const std::vector<std::string>& assertions, bool require_fit) {
  int code = kDone;
  for (const std::string& assertion : assertions) {
    const report::AssertionResult result = report::check_assertion(summary, assertion);
    if (result.holds) continue;
    spdlog::error("assertion does not hold: {}", result.text);
    code = kAssertionFailed;
  }
  if (require_fit && !summary.fits) {
    spdlog::error("the plan does not fit: {}", report::misfit(summary));
    return kDoesNotFit;
  }
  return code;
}

}  // namespace trainsim::cli
