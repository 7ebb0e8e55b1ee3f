// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/html_report.hpp"

#include <utility>

#include "sim/cli/kernel_gains.hpp"
#include "sim/cli/plan_changes.hpp"
#include "sim/report/page/page.hpp"

namespace trainsim::cli {

namespace {

/// An argument as a shell takes it.
std::string quoted(const std::string& argument) {
  const bool plain = !argument.empty() && argument.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-./=:,+@%") == std::string::npos;
  if (plain) return argument;
  std::string text = "'";
  for (const char c : argument) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text.push_back(c);
    }
  }
  text.push_back('\'');
  return text;
}

std::string command_of(const Subject& subject) {
  std::string command = "trainsim run " + quoted(subject.name);
  for (const std::string& override_text : subject.overrides) {
    command += " --set ";
    command += quoted(override_text);
  }
  return command;
}

}  // namespace

std::string html_report(const Subject& subject, const config::Experiment& experiment,
                        const report::Summary& summary, const Recording& recording,
                        const engine::Progress& progress) {
  report::WhatIf what_if = plan_changes(subject, experiment, progress);
  what_if.kernels = kernel_gains(recording.job, summary, progress);
  return report::to_html({experiment, summary, recording.job, recording.timeline, std::move(what_if),
                          command_of(subject), TRAINSIM_VERSION});
}

}  // namespace trainsim::cli
