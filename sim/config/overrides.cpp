// SPDX-License-Identifier: Apache-2.0
#include "sim/config/overrides.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/config/parser.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

/// Overrides are printed after all files, in the order of the command line.
constexpr int kFirstOrder = 1'000'000;

/// Places where a word may stand for a mapping, and the key of that mapping that holds the word.
const std::map<std::string_view, std::string_view> kWordKeys = {{"model", "extends"},
                                                                {"cluster", "extends"},
                                                                {"cluster.gpu", "extends"},
                                                                {"cluster.intra_node", "extends"},
                                                                {"cluster.nic", "extends"},
                                                                {"cluster.fabric", "extends"},
                                                                {"plan.recompute", "granularity"}};

/// A part of the key path with its place in the override.
struct Step {
  std::string key;
  Position at;
};

/// Splits "plan.recompute.layers" into its steps.
std::vector<Step> split_path(std::string_view path, const std::shared_ptr<const Source>& source) {
  std::vector<Step> steps;
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    steps.push_back({std::string(path.substr(start, end - start)), {source, 1, static_cast<int>(start) + 1}});
    start = end + 1;
  }
  return steps;
}

/// The shorthand and what it stands for name the same value, so a later override wins over either.
void expand_shorthand(std::vector<Step>& steps) {
  if (steps.size() != 2 || steps[0].key != "cluster" || steps[1].key != "nic_bandwidth") return;
  const Position at = steps[1].at;
  steps[1] = {"nic", at};
  steps.push_back({"bandwidth", at});
}

/// Makes `value`, which stands at `path`, a mapping that can take another key; false when that makes no
/// sense.
bool make_mapping(Value& value, const std::string& path, const Position& at) {
  if (value.kind == Kind::kMap) return true;
  const auto word = kWordKeys.find(path);
  if (value.kind == Kind::kNull) {
    value = make_map(at);
  } else if (value.kind == Kind::kScalar && word != kWordKeys.end()) {
    const Position word_at = value.at;
    Value map = make_map(word_at);
    map.set(word->second, word_at, std::move(value));
    value = std::move(map);
  } else {
    return false;
  }
  return true;
}

/// "plan.global_batch_size=null": the key goes back to its default, as if the configuration did not have it.
void take_back(Value& map, const Step& step, const std::string& path, Report& report) {
  const auto entry = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&step](const Entry& each) { return each.key == step.key; });
  if (entry != map.entries.end()) {
    map.entries.erase(entry);
    return;
  }
  report.add(step.at, join_path(path, step.key),
             "is not set in the configuration, so that null has nothing to take back; give a value");
}

/// Without a value the key is taken back.
void set_value(Value& config, const std::vector<Step>& steps, std::optional<Value> value, Report& report) {
  Value* map = &config;
  std::string path;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    const Step& step = steps[i];
    path = join_path(path, step.key);
    if (map->find(step.key) == nullptr) map->set(step.key, step.at, make_map(step.at));
    Value& next = map->find(step.key)->value;
    if (!make_mapping(next, path, step.at)) {
      report.add_unknown_key(
          step.at, path,
          "is " + describe(next) + " and has no keys; set it as a whole (--set " + path + "=...)");
      return;
    }
    map = &next;
  }
  if (value) {
    map->set(steps.back().key, steps.back().at, std::move(*value));
  } else {
    take_back(*map, steps.back(), path, report);
  }
}

void apply_override(Value& config, const std::string& text, int order, Report& report) {
  const std::string name = "--set " + clip(text);
  if (!check_text(text, name, order, report)) return;
  const auto source = std::make_shared<Source>(name, "", text, order);
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    report.add({source, 1, 1}, "", "an override needs a '=', as in --set plan.micro_batch_size=2");
    return;
  }
  std::vector<Step> steps = split_path(std::string_view(text).substr(0, equals), source);
  for (const Step& step : steps) {
    if (!step.key.empty()) continue;
    report.add(step.at, "", "a key is missing here; write for example --set plan.micro_batch_size=2");
    return;
  }
  expand_shorthand(steps);
  // Blanks stand for what is before the value, so that columns count from the override's start.
  std::optional<Value> value = parse(source, std::string(equals + 1, ' ') + text.substr(equals + 1), report);
  if (!value) return;
  if (value->kind == Kind::kNull) {
    value->at = steps.back().at;
    // "gpus=" is a mistake, as with a variable of the shell that is not set.
    if (text.find_first_not_of(' ', equals + 1) != std::string::npos) value.reset();
  }
  set_value(config, steps, std::move(value), report);
}

}  // namespace

void apply_overrides(Value& config, const std::vector<std::string>& overrides, Report& report) {
  int order = kFirstOrder;
  for (const std::string& text : overrides) apply_override(config, text, order++, report);
}

}  // namespace trainsim::config
