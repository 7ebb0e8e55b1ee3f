// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <optional>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/options.hpp"

namespace {

/// Logs go to standard error; standard output is for results.
void set_up_log(const trainsim::cli::Options& options) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("trainsim"));
  spdlog::set_pattern("trainsim: %^%l%$: %v");
  if (options.verbose) spdlog::set_level(spdlog::level::debug);
  if (options.quiet) spdlog::set_level(spdlog::level::err);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::optional<trainsim::cli::Options> options = trainsim::cli::parse_options(argc, argv);
    if (!options) return trainsim::cli::kDone;
    set_up_log(*options);
    return trainsim::cli::execute(*options);
  } catch (const trainsim::InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return trainsim::cli::kBadInput;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trainsim: error: %s\n", error.what());
    return trainsim::cli::kFailure;
  }
}
