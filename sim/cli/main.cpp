// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/command_line.hpp"
#include "sim/cli/exit_code.hpp"

namespace {

/// Logs go to standard error; standard output is for results.
void set_up_log(const trainsim::cli::CommonOptions& options) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("trainsim"));
  spdlog::set_pattern("trainsim: %^%l%$: %v");
  if (options.verbose) spdlog::set_level(spdlog::level::debug);
  if (options.quiet) spdlog::set_level(spdlog::level::err);
}

}  // namespace

int main(int argc, char** argv) {
  // A closed pipe is an error of writing, with a message and without a half-written file.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const std::unique_ptr<trainsim::cli::Command> command = trainsim::cli::parse_command_line(argc, argv);
    if (!command) return trainsim::cli::kDone;
    set_up_log(command->common());
    return command->execute();
  } catch (const trainsim::InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return trainsim::cli::kBadInput;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trainsim: error: %s\n", error.what());
    return trainsim::cli::kFailure;
  }
}
