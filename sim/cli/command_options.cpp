// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/command_options.hpp"

#include <algorithm>

#include "sim/base/diagnostics.hpp"
#include "sim/base/spelling.hpp"
#include "sim/cli/command_text.hpp"
#include "sim/cli/worker_pool.hpp"

namespace trainsim::cli {

namespace {

std::string word(Format format) {
  switch (format) {
    case Format::kText:
      return "text";
    case Format::kJson:
      return "json";
    case Format::kCsv:
      return "csv";
    case Format::kMarkdown:
      return "markdown";
    case Format::kJsonLines:
      return "jsonl";
  }
  return "";
}

std::vector<std::string> words(const std::vector<Format>& formats) {
  std::vector<std::string> all;
  all.reserve(formats.size());
  for (const Format format : formats) all.push_back(word(format));
  return all;
}

Format chosen(const std::string& text, const std::vector<Format>& formats) {
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](Format format) { return word(format) == text; });
  if (found == formats.end()) fail_choice("--format", text, words(formats));
  return *found;
}

}  // namespace

void fail_choice(const std::string& what, const std::string& value, const std::vector<std::string>& legal) {
  const std::string near = closest_match(value, legal);
  throw InputError("trainsim: error: " + what + " '" + value + "' is not known; use " +
                   join_alternatives(legal) + (near.empty() ? "" : " (did you mean '" + near + "'?)"));
}

void CommonOptions::declare(Options& options, const std::vector<Format>& formats) {
  options
      .add_read(
          "--format",
          [this, formats](const std::string& text) {
            format = chosen(text, formats);
            format_given = true;
          },
          join_alternatives(words(formats)))
      .value("FORMAT")
      .fallback(word(formats.front()));
  add_output(options, output);
  options.add_flag("-q,--quiet", quiet, "no progress, only errors on standard error");
  options.add_flag("-v,--verbose", verbose,
                   "say what is being done on standard error; a run's text shows more");
}

void add_output(Options& options, std::string& output) {
  options.add("-o,--output", output, "write the result to FILE instead of standard output").file();
}

void add_overrides(Options& options, std::vector<std::string>& overrides, const std::string& help) {
  options.add("--set", overrides, help).value("KEY=VALUE").repeatable();
}

void add_config(Options& options, Subject& subject) {
  options.add("CONFIG", subject.name, "a configuration file, or the name of one in configs/").required();
  add_overrides(options, subject.overrides,
                "override a value, as in plan.micro_batch_size=2; repeatable; same checks as the file");
}

void add_require_fit(Options& options, bool& require_fit) {
  options.add_flag("--require-fit", require_fit, "exit with 3 when the plan does not fit in memory");
}

void add_jobs(Options& options, std::size_t& workers, const std::string& what) {
  options.add("-j,--jobs", workers, what + " at the same time; one per processor by default")
      .value("N")
      .within(1, 1024);
}

std::size_t processes(std::size_t workers) {
  return workers > 0 ? workers : available_processors();
}

void add_uncertainty(Options& options, UncertaintyChoice& choice, const std::string& help) {
  const Option flag = options.add_flag("--uncertainty", choice.wanted, help);
  options.add("--samples", choice.samples, "how often --uncertainty draws the constants; 100 by default")
      .value("N")
      .within(10, 100000)
      .needs(flag);
  options.add("--seed", choice.seed, "what --uncertainty draws them from; 1 by default")
      .value("N")
      .within(0, 2147483647)
      .needs(flag);
}

void add_to(CommandText& text, const UncertaintyChoice& choice) {
  if (!choice.wanted) return;
  text.flag("--uncertainty", true).option("--samples", std::to_string(choice.samples));
  text.option("--seed", std::to_string(choice.seed));
}

}  // namespace trainsim::cli
