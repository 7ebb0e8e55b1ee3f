// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/command_options.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "sim/base/diagnostics.hpp"
#include "sim/base/spelling.hpp"
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

void CommonOptions::declare(CLI::App& app, const std::vector<Format>& formats) {
  app.add_option_function<std::string>(
         "--format",
         [this, formats](const std::string& text) {
           format = chosen(text, formats);
           format_given = true;
         },
         join_alternatives(words(formats)))
      ->type_name("FORMAT")
      ->default_str(word(formats.front()));
  add_output(app, output);
  app.add_flag("-q,--quiet", quiet, "no progress, only errors on standard error");
  app.add_flag("-v,--verbose", verbose, "say what is being done on standard error");
}

void add_output(CLI::App& app, std::string& output) {
  app.add_option("-o,--output", output, "write the result to FILE instead of standard output")
      ->type_name("FILE");
}

void add_overrides(CLI::App& app, std::vector<std::string>& overrides, const std::string& help) {
  app.add_option("--set", overrides, help)->type_name("KEY=VALUE")->expected(1)->take_all();
}

void add_config(CLI::App& app, Subject& subject) {
  app.add_option("CONFIG", subject.name, "a configuration file, or the name of one in configs/")->required();
  add_overrides(app, subject.overrides,
                "override a value, as in plan.micro_batch_size=2; repeatable; same checks as the file");
}

void add_require_fit(CLI::App& app, bool& require_fit) {
  app.add_flag("--require-fit", require_fit, "exit with 3 when the plan does not fit in memory");
}

void add_jobs(CLI::App& app, std::size_t& workers, const std::string& what) {
  app.add_option("-j,--jobs", workers, what + " at the same time; one per processor by default")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
}

std::size_t processes(std::size_t workers) {
  return workers > 0 ? workers : available_processors();
}

}  // namespace trainsim::cli
