// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/launch.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/exchange/arguments.hpp"
#include "sim/exchange/shell_expansion.hpp"

namespace trainsim::exchange {

namespace {

/// Options for the number of nodes and for GPUs of a node, in the order in which they are believed.
constexpr std::array<std::string_view, 5> kNodeOptions = {"--nnodes", "--num-nodes", "--nodes", "-N",
                                                          "--nnode"};
constexpr std::array<std::string_view, 7> kGpuOptions = {
    "--nproc-per-node", "--num-gpus",      "--gpus-per-node", "--ntasks-per-node",
    "--gres",           "--gpus-per-task", "--gpus"};

/// A number at the end of "8", "gpu:8", "gpu:a100:8" or "1:4" (torchrun's elastic range).
std::optional<std::int64_t> last_number(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  return whole_number(colon == std::string::npos ? text : text.substr(colon + 1));
}

/// Whether a word is -N with its value attached: "-N4".
bool has_attached_nodes(const std::string& word) {
  return word.starts_with("-N") && word.size() > 2 &&
         word.find_first_not_of("0123456789", 2) == std::string::npos;
}

/// "--nodes=4", "-N 4" and "-N4" alike: the value behind an option of a command.
std::optional<std::string> option_value(const std::vector<std::string>& words, std::string_view option) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    std::string name = words[i].substr(0, equals);
    std::replace(name.begin(), name.end(), '_', '-');
    if (option == "-N" && has_attached_nodes(name)) value = name.substr(2);
    if (name != option) continue;
    if (equals != std::string::npos) value = words[i].substr(equals + 1);
    if (equals == std::string::npos && i + 1 < words.size()) value = words[i + 1];
  }
  return value;
}

/// Whether a value is meant as a number: not torchrun's words, a kind of GPU without number (--gres
/// gpu:a100), nor what other programs mean by -N.
bool counts(std::string_view option, const std::string& value) {
  constexpr std::array<std::string_view, 4> words = {"auto", "gpu", "cpu", "xpu"};
  return option.starts_with("--") && option != "--gres" && !value.starts_with('-') &&
         std::find(words.begin(), words.end(), value) == words.end();
}

template <std::size_t N>
void take(const std::vector<std::string>& words, const std::array<std::string_view, N>& options,
          std::optional<std::int64_t>& number, Launch& launch) {
  for (const std::string_view option : options) {
    if (number) return;
    const std::optional<std::string> value = option_value(words, option);
    if (!value) continue;
    if (is_open(*value)) {
      launch.open.push_back(*value);
      continue;
    }
    number = last_number(*value);
    if (!number || *number < 1) {
      number.reset();
      if (counts(option, *value)) launch.wrong.emplace_back(option, *value);
      continue;
    }
    std::string& origin = launch.origin;
    origin += origin.empty() ? "" : " ";
    origin += option;
    origin += ' ';
    origin += *value;
  }
}

bool is_torchrun_name(const std::string& word) {
  return word == "torchrun" || word.ends_with("/torchrun") || word == "torch.distributed.run" ||
         word == "torch.distributed.launch";
}

/// Whether one of torchrun's names is among the words of a command, or behind its -m.
bool is_torchrun(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), is_torchrun_name);
}

/// Whether a command asks a job scheduler for nodes, or runs on those that one gave.
bool runs_on_nodes(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 5> names = {"srun", "sbatch", "salloc", "mpirun", "mpiexec"};
  return std::any_of(words.begin(), words.end(), [&names](const std::string& word) {
    return std::find(names.begin(), names.end(), word.substr(word.rfind('/') + 1)) != names.end();
  });
}

/// Whether the word behind this one is its value. Of torchrun's options only a few are flags.
bool takes_value(const std::string& word) {
  constexpr std::array<std::string_view, 7> flags = {
      "--standalone", "--no-python", "--no_python", "--run-path", "--run_path", "--use-env", "--use_env"};
  return word.starts_with('-') && word.find('=') == std::string::npos &&
         std::find(flags.begin(), flags.end(), word) == flags.end();
}

/// Words of torchrun's own, before the script that it runs, which may stand for any of its options.
std::vector<std::string> open_options(const std::vector<std::string>& words) {
  std::vector<std::string> open;
  auto word = std::find_if(words.begin(), words.end(), is_torchrun_name);
  if (word == words.end()) return open;
  for (++word; word != words.end(); ++word) {
    if (word->ends_with(".py") || *word == "-m" || *word == "--module") break;
    const bool whole = word->starts_with(kOpenBegin) && word->find(kOpenEnd) == word->size() - 1;
    if (whole && !takes_value(*(word - 1))) open.push_back(*word);
  }
  return open;
}

/// The words behind #SBATCH, up to a comment.
std::vector<std::string> batch_words(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream pieces(line);
  for (std::string piece; pieces >> piece && !piece.starts_with('#');) {
    for (std::string& word : expand_word(piece, {})) words.push_back(std::move(word));
  }
  return words;
}

/// Whether any command has one of the options, even with a value that nobody knows.
template <std::size_t N>
bool names(const std::vector<std::vector<std::string>>& commands,
           const std::array<std::string_view, N>& options) {
  return std::any_of(commands.begin(), commands.end(), [&options](const std::vector<std::string>& words) {
    return std::any_of(options.begin(), options.end(),
                       [&words](std::string_view option) { return option_value(words, option).has_value(); });
  });
}

/// The number of nodes of which no option says anything: torchrun's variable for it, or its default of one,
/// unless something suggests that there are more.
void take_torchrun_nodes(const ShellScript& script, const std::vector<std::vector<std::string>>& commands,
                         Launch& launch) {
  const auto variable = script.variables.find("PET_NNODES");
  if (variable != script.variables.end() && !variable->second.empty()) {
    const std::string& value = variable->second.front();
    if (is_open(value)) launch.open.push_back(value);
    const std::optional<std::int64_t> number = last_number(value);
    if (number.value_or(0) < 1) return;
    launch.nodes = number;
    launch.origin += (launch.origin.empty() ? "" : " ") + ("PET_NNODES " + value);
    return;
  }
  bool alone = script.batch_options.empty() && std::none_of(commands.begin(), commands.end(), runs_on_nodes);
  for (const auto& words : commands) {
    const std::vector<std::string> open = open_options(words);
    launch.open.insert(launch.open.end(), open.begin(), open.end());
    alone = alone && open.empty();
  }
  if (!alone) return;
  launch.nodes = 1;
  launch.origin += launch.origin.empty() ? "" : ", ";
  launch.origin += "one node, the default of torchrun";
}

}  // namespace

std::optional<std::int64_t> Launch::gpus() const {
  if (!nodes || !gpus_per_node) return std::nullopt;
  std::int64_t product = 0;
  if (__builtin_mul_overflow(*nodes, *gpus_per_node, &product)) return std::nullopt;
  return product;
}

Launch find_launch(const ShellScript& script) {
  Launch launch;
  std::vector<std::vector<std::string>> commands = script.commands;
  for (const std::string& line : script.batch_options) commands.push_back(batch_words(line));
  // A launcher of processes knows better than what asks for nodes, so options are gone through in turn.
  for (const auto& words : commands) take(words, kNodeOptions, launch.nodes, launch);
  for (std::size_t i = 0; i < kGpuOptions.size(); ++i) {
    for (const auto& words : commands)
      take(words, std::array<std::string_view, 1>{kGpuOptions[i]}, launch.gpus_per_node, launch);
  }
  if (!names(commands, kNodeOptions) && std::any_of(commands.begin(), commands.end(), is_torchrun))
    take_torchrun_nodes(script, commands, launch);
  return launch;
}

}  // namespace trainsim::exchange
