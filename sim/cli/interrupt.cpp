// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/interrupt.hpp"

namespace trainsim::cli {

namespace {

volatile std::sig_atomic_t noted = 0;

void note(int /*signal*/) {
  noted = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  noted = 0;
  struct sigaction action = {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  // Reset, so that the second one has the usual effect.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

bool InterruptGuard::interrupted() {
  return noted != 0;
}

}  // namespace trainsim::cli
