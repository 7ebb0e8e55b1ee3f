// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/interruption.hpp"

#include <array>
#include <csignal>

namespace trainsim::cli {

namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

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
  for (const int number : kSignals) {
    struct sigaction old {};
    sigaction(number, nullptr, &old);
    // Whoever started the program with nohup wants it to go on.
    if (old.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

Interruption::~Interruption() {
  for (const int number : kSignals) {
    struct sigaction old {};
    sigaction(number, nullptr, &old);
    if (old.sa_handler == note) std::signal(number, SIG_DFL);
  }
  std::signal(SIGPIPE, SIG_DFL);
}

int Interruption::signal() {
  return received;
}

void leave_interruptions_to_parent() {
  for (const int number : kSignals) std::signal(number, SIG_IGN);
}

}  // namespace trainsim::cli
