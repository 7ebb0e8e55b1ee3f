// SPDX-License-Identifier: Apache-2.0
#include "sim/config/what_if.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/base/op_class.hpp"
#include "sim/base/spelling.hpp"
#include "sim/base/text.hpp"
#include "sim/config/quantity.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

constexpr const char* kCluster = "cluster.";
constexpr std::array<const char*, 8> kSections = {"model",    "cluster", "gpus",       "plan",
                                                  "software", "memory",  "simulation", "op"};

/// A change taken apart, with what its messages begin with.
struct Change {
  std::string name;
  std::string value;
  std::string where;

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError("trainsim: error: " + where + ": " + message);
  }
};

Change parse_change(const std::string& text, const std::string& where) {
  const std::size_t equals = text.find('=');
  Change change;
  change.where = where + " " + clip(text);
  if (equals == std::string::npos)
    change.fail("a change needs a '=', as in gpu.hbm_bandwidth=+20% or network.nic=800 Gb/s");
  change.name = trimmed(std::string_view(text).substr(0, equals));
  change.value = trimmed(std::string_view(text).substr(equals + 1));
  if (change.name.empty()) change.fail("there is no name before the '='");
  if (change.value.empty()) change.fail("there is no value behind the '='");
  return change;
}

std::optional<std::string> value_of(const Experiment& base, const std::string& key) {
  const auto found = std::find_if(base.values.begin(), base.values.end(),
                                  [&key](const auto& value) { return value.first == key; });
  if (found == base.values.end()) return std::nullopt;
  return found->second;
}

/// A key with the plan's precision, or its way of launching, in the place of '*'.
std::string filled_in(const std::string& key, const Experiment& base) {
  const std::size_t star = key.find('*');
  if (star == std::string::npos) return key;
  std::string word = plan::to_string(base.plan.precision);
  if (key.find("launch") != std::string::npos) {
    word = "eager";
    if (base.plan.launch == plan::Launch::kCompiled) word = "compiled";
    if (base.plan.launch == plan::Launch::kCudaGraph) word = "graph";
  }
  return key.substr(0, star) + word;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  names.reserve(kOpClasses + 1);
  for (const OpClass op : kAllOpClasses) names.emplace_back(to_string(op));
  names.emplace_back("memory");
  return names;
}

/// `op.NAME.speedup`, which stands for itself.
WhatIfName op_speedup(const Change& change) {
  const std::vector<std::string> names = op_names();
  const std::string rest = change.name.substr(3);
  const std::string op = rest.substr(0, rest.find('.'));
  if (std::find(names.begin(), names.end(), op) == names.end()) {
    const std::string near = closest_match(op, names);
    change.fail("'" + clip(op) + "' is no operation" +
                (near.empty() ? "" : " (did you mean '" + near + "'?)") + "; operations are " +
                join_alternatives(names));
  }
  if (rest != op + ".speedup") change.fail("write op." + op + ".speedup, as in op." + op + ".speedup=2");
  return {change.name, {change.name}};
}

[[noreturn]] void fail_unknown(const Change& change, const Experiment& base) {
  std::vector<std::string> names;
  names.reserve(what_if_names().size() + 2 * base.values.size());
  std::string list;
  for (const WhatIfName& known : what_if_names()) {
    names.push_back(known.name);
    list += known.name;
    list += ", ";
  }
  for (const auto& [key, value] : base.values) {
    names.push_back(key);
    if (key.starts_with("cluster.gpu.")) names.push_back(key.substr(std::string(kCluster).size()));
  }
  std::string near = closest_match(change.name, names);
  // Somebody may have written the beginning of a name only.
  const auto longer = std::find_if(names.begin(), names.end(), [&change](const std::string& name) {
    return name.starts_with(change.name);
  });
  if (near.empty() && longer != names.end()) near = *longer;
  change.fail("'" + clip(change.name) + "' is not known" +
              (near.empty() ? "" : " (did you mean '" + near + "'?)") + "; names are " + list +
              "op.NAME.speedup, gpu.KEY for any key of a GPU, or a key of the configuration such as "
              "plan.micro_batch_size");
}

WhatIfName find_name(const Change& change, const Experiment& base) {
  for (const WhatIfName& known : what_if_names()) {
    if (known.name == change.name) return known;
  }
  if (change.name.starts_with("op.")) return op_speedup(change);
  if (change.name.starts_with("gpu.") && value_of(base, kCluster + change.name))
    return {change.name, {kCluster + change.name}};
  // Keys that a file may leave out are known when it is read.
  const std::string section = change.name.substr(0, change.name.find('.'));
  if (section == "run") {
    change.fail(
        "steps are compared here, and nothing of the section run is about a step; `trainsim sweep CONFIG "
        "--vary " +
        change.name + "=VALUES` shows whole runs side by side");
  }
  if (std::find(kSections.begin(), kSections.end(), section) == kSections.end()) fail_unknown(change, base);
  return {change.name, {change.name}};
}

/// Factor of "+20%", "-10%" or "x2"; nothing for a value as in a file.
std::optional<double> relative(const Change& change) {
  const std::string& value = change.value;
  const bool share = value.starts_with('+') || value.starts_with('-');
  const bool times = value.starts_with('x') && value.size() > 1 && value[1] >= '0' && value[1] <= '9';
  if (!share && !times) return std::nullopt;
  const std::optional<Amount> amount = split_amount(times ? value.substr(1) : value);
  const std::string cure = "; write a relative value such as +20%, -10% or x2";
  if (!amount || amount->unit != (times ? "" : "%"))
    change.fail("'" + clip(value) + "' can't be read" + cure);
  const double factor = times ? amount->number : 1.0 + amount->number / 100.0;
  if (!(factor > 0) || !std::isfinite(factor)) change.fail("'" + clip(value) + "' leaves nothing" + cure);
  return factor;
}

/// A number as `--set` takes it; a whole one stays whole.
std::string number_text(double number) {
  std::array<char, 40> text{};
  const bool whole = number == std::round(number) && std::abs(number) < 1e15;
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.15g", number);
  return text.data();
}

/// A value times a factor, with the value's unit.
std::string scaled(const Change& change, const std::string& key, const std::string& value, double factor) {
  if (const Parsed<std::int64_t> count = parse_count(value); count.value)
    return number_text(static_cast<double>(*count.value) * factor);
  const std::optional<Amount> amount = split_amount(value);
  if (!amount) {
    change.fail(key + " is " + clip(value) +
                ", which is no number to change by a factor; give a value, as in " + change.name + "=VALUE");
  }
  return number_text(amount->number * factor) + (amount->unit.empty() ? "" : " " + amount->unit);
}

/// By how much a new value differs from the one that is there; 1 where that can't be known.
double factor_between(const std::string& before, const std::string& after) {
  for (const Dimension dimension :
       {Dimension::kSize, Dimension::kRate, Dimension::kTime, Dimension::kCompute, Dimension::kPower}) {
    const Parsed<double> old_value = parse_quantity(before, dimension);
    const Parsed<double> new_value = parse_quantity(after, dimension);
    if (old_value.value && new_value.value && *old_value.value > 0)
      return *new_value.value / *old_value.value;
  }
  return 1.0;
}

/// A key's value before the change; an operation is as fast as it is modelled.
std::string current_value(const Change& change, const std::string& key, const Experiment& base) {
  if (std::optional<std::string> value = value_of(base, key)) return *std::move(value);
  if (key.starts_with("op.")) return "1";
  if (key != change.name)
    change.fail(change.name + " stands for " + key + ", which has no value in this configuration");
  std::vector<std::string> keys(base.values.size());
  std::transform(base.values.begin(), base.values.end(), keys.begin(),
                 [](const auto& each) { return each.first; });
  const std::string near = closest_match(key, keys);
  change.fail(key + " has no value in this configuration" +
              (near.empty() ? "" : " (did you mean '" + near + "'?)"));
}

void add_overrides(const Change& change, const Experiment& base, std::vector<std::string>& overrides) {
  const WhatIfName name = find_name(change, base);
  std::optional<double> factor = relative(change);
  if (!factor && name.relative_only)
    change.fail(name.name + " takes relative values only, such as +20%, -10% or x2");
  const std::string first = filled_in(name.keys.front(), base);
  if (factor) {
    if (name.inverse) factor = 1.0 / *factor;
    overrides.push_back(first + "=" + scaled(change, first, current_value(change, first, base), *factor));
  } else {
    // A key of the configuration that was left out may be given; a short name stands for one that is there.
    if (name.name != first) factor = factor_between(current_value(change, first, base), change.value);
    overrides.push_back(first + "=" + change.value);
  }
  for (std::size_t i = 1; i < name.keys.size(); ++i) {
    const std::string key = filled_in(name.keys[i], base);
    const std::optional<std::string> value = value_of(base, key);
    if (value) overrides.push_back(std::string(key).append("=").append(scaled(change, key, *value, *factor)));
  }
}

}  // namespace

const std::vector<WhatIfName>& what_if_names() {
  static const std::vector<WhatIfName> names = {
      {"gpu.peak_flops", {"cluster.gpu.peak_*"}},
      {"gpu.hbm_bandwidth", {"cluster.gpu.memory_bandwidth"}},
      {"gpu.memory", {"cluster.gpu.memory"}},
      {"network.nvlink", {"cluster.intra_node.bandwidth", "cluster.intra_node.nvls_bandwidth"}},
      {"network.intra_node", {"cluster.intra_node.bandwidth", "cluster.intra_node.nvls_bandwidth"}},
      {"network.pcie", {"cluster.pcie.bandwidth"}},
      {"network.nic", {"cluster.nic.bandwidth"}},
      {"network.nics", {"cluster.nics_per_node"}},
      {"network.oversubscription", {"cluster.fabric.oversubscription"}},
      {"network.latency",
       {"cluster.collective_latency", "cluster.point_to_point_latency", "cluster.intra_node.latency",
        "cluster.intra_node.ll_latency", "cluster.intra_node.ll128_latency", "cluster.pcie.latency",
        "cluster.nic.latency", "cluster.nic.ll_latency", "cluster.fabric.switch_latency"},
       false,
       true},
      {"host.launch_interval", {"cluster.gpu.launch_interval_*"}},
      {"host.launch_rate", {"cluster.gpu.launch_interval_*"}, true, true}};
  return names;
}

std::vector<std::string> split_changes(const std::string& text) {
  std::vector<std::string> changes(1);
  int depth = 0;
  char quote = '\0';
  for (const char c : text) {
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      changes.emplace_back();
      continue;
    }
    changes.back() += c;
  }
  return changes;
}

std::vector<std::string> overrides_for(const std::vector<std::string>& changes, const Experiment& base,
                                       const std::string& where) {
  std::vector<std::string> overrides;
  for (const std::string& text : changes) add_overrides(parse_change(text, where), base, overrides);
  return overrides;
}

bool has(const Experiment& base, const WhatIfName& name) {
  return value_of(base, filled_in(name.keys.front(), base)).has_value();
}

}  // namespace trainsim::config
