// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/options.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "sim/base/diagnostics.hpp"
#include "sim/base/spelling.hpp"

namespace trainsim::cli {

namespace {

const std::vector<std::string> kCommands = {"run",       "check", "list",     "validate",
                                            "calibrate", "bench", "topology", "memory"};
/// Words that later versions will understand; better named than taken for files.
const std::vector<std::string> kLater = {"sweep", "search", "compare"};
const std::vector<std::string> kPresetKinds = {"models", "gpus", "clusters", "configs"};

const std::map<std::string, Format> kFormats = {
    {"text", Format::kText}, {"json", Format::kJson}, {"csv", Format::kCsv}, {"markdown", Format::kMarkdown}};

constexpr const char* kFooter =
    "\nExit codes: 0 done; 2 bad input or command line; 3 does not fit (--require-fit); 4 an --assert does "
    "not hold;\n"
    "1 anything else. `trainsim CONFIG` is short for `trainsim run CONFIG`.\n";

void add_common(CLI::App& command, Options& options, std::string& format) {
  command.add_option("--format", format, "text, json, csv (run, validate, bench) or markdown (validate)")
      ->type_name("FORMAT")
      ->default_str("text");
  command.add_option("-o,--output", options.output, "write the result to FILE instead of standard output")
      ->type_name("FILE");
  command.add_flag("-q,--quiet", options.quiet, "no progress, only errors on standard error");
  command.add_flag("-v,--verbose", options.verbose, "say what is being done on standard error");
}

void add_overrides(CLI::App& command, Options& options) {
  command
      .add_option("--set", options.overrides,
                  "override a value, as in plan.micro_batch_size=2; repeatable; same checks as the file")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
}

void add_config(CLI::App& command, Options& options) {
  command.add_option("CONFIG", options.subject, "a configuration file, or the name of one in configs/")
      ->required();
  add_overrides(command, options);
}

void add_run(CLI::App& command, Options& options, std::string& fold) {
  add_config(command, options);
  command
      .add_option("--assert", options.assertions,
                  "exit with 4 unless it holds, as in 'bubble_ratio<=0.10'; repeatable")
      ->type_name("NAME OP NUMBER")
      ->expected(1)
      ->take_all();
  command.add_flag("--require-fit", options.require_fit, "exit with 3 when the plan does not fit in memory");
  command
      .add_option("--fold", fold, "auto: simulate one of each group of identical ranks; off: simulate all")
      ->type_name("MODE")
      ->default_str("auto");
  command.add_flag("--uncertainty", options.uncertainty,
                   "vary the constants in their ranges: an interval of the step time, and what it hangs on");
  command
      .add_option("--samples", options.samples, "how often --uncertainty draws the constants; 100 by default")
      ->type_name("N")
      ->check(CLI::Range(10, 100000));
  command.add_option("--seed", options.seed, "what --uncertainty draws them from; 1 by default")
      ->type_name("N")
      ->check(CLI::Range(0, 2147483647));
  command.add_flag("--verify-folding", options.verify_folding, "run folded and unfolded, and compare");
}

void add_memory(CLI::App& command, Options& options) {
  add_config(command, options);
  command.add_option("--rank", options.rank, "the rank to look at; by default the one that needs most")
      ->type_name("R")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{999'999'999}));
  command
      .add_option("--largest", options.largest,
                  "also find the largest micro_batch_size or sequence_length that fits")
      ->type_name("KEY");
  command.add_flag("--fewest-gpus", options.fewest_gpus,
                   "also find the fewest GPUs on which some split of the model fits");
  command.add_flag("--require-fit", options.require_fit, "exit with 3 when the plan does not fit in memory");
}

void add_validate(CLI::App& command, Options& options) {
  command
      .add_option("DIR", options.subject,
                  "a folder (or one file) of measured runs and kernel tables, such as experiments/validation")
      ->required();
  add_overrides(command, options);
  command
      .add_option("-j,--jobs", options.workers,
                  "runs to simulate at the same time; one per processor by default")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--picture", options.picture, "draw measured against simulated step times to FILE (SVG)")
      ->type_name("FILE");
}

void add_calibrate(CLI::App& command, Options& options) {
  command
      .add_option("FILES", options.files,
                  "tables of measured kernels or collectives (.csv), or outputs of nccl-tests")
      ->required();
  CLI::Option* gpu =
      command.add_option("--gpu", options.gpu, "the GPU preset to start from")->type_name("PRESET");
  command
      .add_option("--cluster", options.cluster,
                  "the cluster preset to start from, whose links are fitted too")
      ->type_name("PRESET")
      ->excludes(gpu);
  command.add_option("-o,--output", options.output, "write the YAML to FILE instead of standard output")
      ->type_name("FILE");
}

void add_cluster_overrides(CLI::App& command, Options& options) {
  command
      .add_option("--set", options.overrides,
                  "override a value of the cluster, as in cluster.nics_per_node=4")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
}

void add_topology(CLI::App& command, Options& options) {
  command.add_option("CLUSTER", options.cluster, "the cluster: a preset or a file")->required();
  command
      .add_option("--gpus", options.gpus, "GPUs that the cluster has; by default enough to show all levels")
      ->type_name("N")
      ->check(CLI::Range(1, 131'072));
  command.add_option("--picture", options.picture, "draw it to FILE: .svg (needs Graphviz) or .dot")
      ->type_name("FILE");
  add_cluster_overrides(command, options);
}

void add_bench(CLI::App& command, Options& options) {
  command.add_option("--cluster", options.cluster, "the cluster: a preset or a file")
      ->type_name("CLUSTER")
      ->required();
  command
      .add_option("--op", options.op,
                  "all_reduce (the default), all_gather, reduce_scatter, broadcast or all_to_all")
      ->type_name("OP");
  command
      .add_option("--sizes", options.sizes,
                  "as in '1 MiB..1 GiB' (doubling, the default), '1 MiB..1 GiB*4' or '8 B, 1 MiB'")
      ->type_name("SIZES");
  command
      .add_option("--gpus", options.gpus,
                  "GPUs that take part, at most 16384, or 512 in an all-to-all; one node by default")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command
      .add_option("--compare", options.compare,
                  "output of a program of nccl-tests: simulate the same, and show the error")
      ->type_name("FILE");
  add_cluster_overrides(command, options);
}

/// Text of a bad choice, with what it could have been.
[[noreturn]] void fail_choice(const std::string& what, const std::string& value,
                              const std::vector<std::string>& legal) {
  const std::string near = closest_match(value, legal);
  throw InputError("trainsim: error: " + what + " '" + value + "' is not known; use " +
                   join_alternatives(legal) + (near.empty() ? "" : " (did you mean '" + near + "'?)"));
}

/// Names the first argument that nothing takes.
std::string unexpected(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining(true);
  if (left.empty()) return "there are more arguments than expected";
  const bool option = left.front().starts_with("-");
  return "'" + left.front() + "' is " + (option ? "not an option of this command" : "one argument too many");
}

std::vector<std::string> with_command(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::vector<std::string> global = {"-h", "--help", "--version"};
  const auto is = [&](const std::vector<std::string>& words) {
    return std::find(words.begin(), words.end(), arguments.front()) != words.end();
  };
  if (!arguments.empty() && is(kLater)) {
    throw InputError(
        "trainsim: error: '" + arguments.front() +
        "' is not supported by this version; use run, check, list, validate, calibrate, bench, topology or "
        "memory");
  }
  if (!arguments.empty() && !is(kCommands) && !is(global)) arguments.insert(arguments.begin(), "run");
  // CLI11 wants them last first.
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

void finish(Options& options, const CLI::App& app, const std::string& format, const std::string& fold) {
  const auto found = kFormats.find(format);
  if (found == kFormats.end()) fail_choice("--format", format, {"text", "json", "csv", "markdown"});
  options.format = found->second;
  if (fold != "auto" && fold != "off") fail_choice("--fold", fold, {"auto", "off"});
  options.fold = fold == "auto";
  if (app.got_subcommand("check")) options.command = Command::kCheck;
  if (app.got_subcommand("list")) options.command = Command::kList;
  if (app.got_subcommand("validate")) options.command = Command::kValidate;
  if (app.got_subcommand("bench")) options.command = Command::kBench;
  if (app.got_subcommand("topology")) options.command = Command::kTopology;
  if (app.got_subcommand("memory")) options.command = Command::kMemory;
  const std::vector<std::string> sizes = {"micro_batch_size", "sequence_length"};
  if (!options.largest.empty() && std::find(sizes.begin(), sizes.end(), options.largest) == sizes.end())
    fail_choice("--largest", options.largest, sizes);
  if (app.got_subcommand("calibrate")) {
    options.command = Command::kCalibrate;
    if (options.gpu.empty() && options.cluster.empty()) {
      throw InputError("trainsim: error: calibrate needs --gpu or --cluster, the preset to start from");
    }
  }
  if (options.command == Command::kList &&
      std::find(kPresetKinds.begin(), kPresetKinds.end(), options.subject) == kPresetKinds.end()) {
    fail_choice("list", options.subject, kPresetKinds);
  }
  const bool has_rows = options.command == Command::kRun || options.command == Command::kValidate ||
                        options.command == Command::kBench;
  if (!has_rows && options.format == Format::kCsv) {
    throw InputError("trainsim: error: --format csv is for results of a run; use text or json here");
  }
  if (options.command != Command::kValidate && options.format == Format::kMarkdown) {
    throw InputError("trainsim: error: --format markdown is for validate; use text or json here");
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  std::string format = "text";
  std::string fold = "auto";
  CLI::App app{
      "trainsim predicts one training step of a large model on a GPU cluster: step time, bubble ratio, "
      "scaling efficiency, MFU and peak memory, with the reasons.",
      "trainsim"};
  app.footer(kFooter);
  app.set_version_flag("--version", "trainsim " TRAINSIM_VERSION);
  app.require_subcommand(1);
  CLI::App* run = app.add_subcommand("run", "simulate a configuration and print a summary (the default)");
  CLI::App* check =
      app.add_subcommand("check", "validate only: all problems at once, derived values, no simulation");
  CLI::App* list =
      app.add_subcommand("list", "list the presets that ship: models, gpus, clusters or configs");
  CLI::App* validate =
      app.add_subcommand("validate", "simulate measured runs and print how far off the simulation is");
  CLI::App* calibrate = app.add_subcommand(
      "calibrate", "fit the constants of a GPU or a cluster's links to measurements, and write their YAML");
  CLI::App* bench = app.add_subcommand(
      "bench", "simulate collectives of many sizes, as nccl-tests measures them, or compare with its output");
  CLI::App* topology = app.add_subcommand(
      "topology", "what a cluster's network is made of: distances, bisection, oversubscription, a drawing");
  CLI::App* memory = app.add_subcommand(
      "memory", "where a configuration's memory goes: peak, tensors, curve, and what would make it fit");
  add_run(*run, options, fold);
  add_config(*check, options);
  list->add_option("KIND", options.subject, "models, gpus, clusters or configs")->required();
  add_validate(*validate, options);
  add_calibrate(*calibrate, options);
  add_bench(*bench, options);
  add_topology(*topology, options);
  add_memory(*memory, options);
  for (CLI::App* command : {run, check, list, validate, bench, topology, memory})
    add_common(*command, options, format);
  try {
    app.parse(with_command(argc, argv));
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return std::nullopt;
  } catch (const CLI::CallForVersion&) {
    std::cout << "trainsim " TRAINSIM_VERSION "\n";
    return std::nullopt;
  } catch (const CLI::ExtrasError&) {
    throw InputError("trainsim: error: " + unexpected(app) + "; see `trainsim --help`");
  } catch (const CLI::ParseError& error) {
    if (argc < 2) {
      throw InputError(
          "trainsim: error: no configuration given; try `trainsim configs/gpt175b.yaml`, `trainsim "
          "list configs` or `trainsim --help`");
    }
    throw InputError(std::string("trainsim: error: ") + error.what() + "; see `trainsim --help`");
  }
  finish(options, app, format, fold);
  return options;
}

}  // namespace trainsim::cli
