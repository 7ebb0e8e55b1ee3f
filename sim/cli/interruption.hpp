// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <csignal>

namespace trainsim::cli {

/// What a terminal or a batch system ends programs with.
inline constexpr std::array<int, 3> kEndingSignals = {SIGINT, SIGTERM, SIGHUP};

/// While it exists, the first SIGINT, SIGTERM or SIGHUP only is noted, so that work can be put away; a second
/// one has the effect that it had before. One object at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// The signal that came, or 0.
  static int signal();
};

/// While it exists, such signals wait.
class HeldInterruptions {
 public:
  HeldInterruptions();
  ~HeldInterruptions() { release(); }
  HeldInterruptions(const HeldInterruptions&) = delete;
  HeldInterruptions& operator=(const HeldInterruptions&) = delete;

  /// Ends the wait, as the end of the object does, which a worker process does not see.
  void release() const;

 private:
  sigset_t mask_{};
};

/// For a worker process: what a terminal or a batch system sends to all processes of a program is the
/// parent's to answer, which ends its workers itself.
void leave_interruptions_to_parent();

}  // namespace trainsim::cli
