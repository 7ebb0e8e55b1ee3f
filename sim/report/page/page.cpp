// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/page.hpp"

#include "sim/report/page/frame.hpp"
#include "sim/report/page/parts.hpp"

namespace trainsim::report {

std::string to_html(const Page& page) {
  const PageFrame frame{"Simulated training step", page.summary.name, page.summary.description, page.command,
                        page.version};
  return framed(kRunPage, frame, page_json(page));
}

}  // namespace trainsim::report
