// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/interruption.hpp"

#include <csignal>
#include <cstddef>

namespace trainsim::cli {

namespace {

volatile std::sig_atomic_t received = 0;

void note(int number) {
  received = number;
}

}  // namespace

Interruption::Interruption() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = note;
  // No reading or writing may fail for a signal.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    sigaction(kEndingSignals[i], nullptr, &old_[i]);
    // Whoever started the program with nohup wants it to go on.
    if (old_[i].sa_handler != SIG_IGN) sigaction(kEndingSignals[i], &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) sigaction(kEndingSignals[i], &old_[i], nullptr);
}

int Interruption::signal() {
  return received;
}

void leave_interruptions_to_parent() {
  for (const int number : kEndingSignals) std::signal(number, SIG_IGN);
}

}  // namespace trainsim::cli
