// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/interruption.hpp"

#include <csignal>
#include <cstddef>

namespace trainsim::cli {

namespace {

volatile std::sig_atomic_t received = 0;

/// What the signals did before.
std::array<struct sigaction, kEndingSignals.size()> old_actions{};

void note(int number) {
  received = number;
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    if (kEndingSignals[i] == number) sigaction(number, &old_actions[i], nullptr);
  }
}

}  // namespace

Interruption::Interruption() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = note;
  // No reading or writing may fail for a signal.
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    sigaction(kEndingSignals[i], nullptr, &old_actions[i]);
    // Whoever started the program with nohup wants it to go on.
    if (old_actions[i].sa_handler != SIG_IGN) sigaction(kEndingSignals[i], &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i)
    sigaction(kEndingSignals[i], &old_actions[i], nullptr);
}

int Interruption::signal() {
  return received;
}

HeldInterruptions::HeldInterruptions() {
  sigset_t signals{};
  sigemptyset(&signals);
  for (const int number : kEndingSignals) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, &mask_);
}

void HeldInterruptions::release() const {
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

void leave_interruptions_to_parent() {
  for (const int number : kEndingSignals) std::signal(number, SIG_IGN);
}

}  // namespace trainsim::cli
