// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/compare.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/auto_recompute.hpp"
#include "sim/config/what_if.hpp"

namespace trainsim::cli {

namespace {

/// The '@' after which changes begin: the last before the first '=', or the last of all in a text that has
/// none.
std::size_t place_of_changes(const std::string& text) {
  std::error_code error;
  if (std::filesystem::exists(text, error)) return std::string::npos;
  const std::size_t at = text.rfind('@', text.find('='));
  const bool file = text.ends_with(".yaml") || text.ends_with(".yml");
  return file && text.find('=') == std::string::npos ? std::string::npos : at;
}

Variation load_one(const std::string& text, const CompareSpec& spec, const Overrides& overrides) {
  const config::Experiment base = config::load(spec.config, overrides, config::Scope::kStep);
  Variation variation{text, joined(overrides, config::overrides_for(spec.changes, base, "compare")), {}};
  variation.experiment =
      spec.changes.empty() ? base : config::load(spec.config, variation.overrides, config::Scope::kStep);
  return variation;
}

[[noreturn]] void fail_key_twice(const std::string& text, const std::string& key) {
  throw InputError("trainsim: error: compare " + text + ": " + key +
                   " is changed twice; keep one of its values");
}

/// Of two values of one key the first would have no effect.
void check_no_key_twice(const std::string& text, const std::vector<std::string>& changes) {
  std::set<std::string> seen;
  for (const std::string& change : changes) {
    const std::string key = change.substr(0, change.find('='));
    if (seen.insert(key).second) continue;
    fail_key_twice(text, key);
  }
}

}  // namespace

CompareSpec parse_compare_spec(const std::string& text, const CompareSpec* first) {
  const std::size_t at = place_of_changes(text);
  if (at == std::string::npos) return {text, {}};
  CompareSpec spec{text.substr(0, at), {}};
  if (at == 0) {
    if (first == nullptr) {
      throw InputError("trainsim: error: compare " + text +
                       ": the first configuration needs a name, as in compare gpt175b " + text);
    }
    spec = *first;
  }
  const std::vector<std::string> changes = config::split_changes(text.substr(at + 1));
  check_no_key_twice(text, changes);
  spec.changes = joined(spec.changes, changes);
  return spec;
}

std::vector<Variation> load_compared(const std::vector<std::string>& configs, const Overrides& overrides) {
  if (configs.size() < 2) {
    throw InputError(
        "trainsim: error: compare needs two configurations or more; for one with a change write `trainsim "
        "compare " +
        (configs.empty() ? "CONFIG" : configs.front()) + " @plan.recompute=full`");
  }
  std::vector<CompareSpec> specs;
  std::vector<Variation> variations;
  specs.reserve(configs.size());
  variations.reserve(configs.size());
  for (const std::string& text : configs) {
    specs.push_back(parse_compare_spec(text, specs.empty() ? nullptr : specs.data()));
    variations.push_back(load_one(text, specs.back(), overrides));
  }
  return variations;
}

std::vector<SampledConfig> sampled_configs(const std::vector<std::string>& configs,
                                           const std::vector<Variation>& variations) {
  const CompareSpec first = parse_compare_spec(configs.front(), nullptr);
  std::vector<SampledConfig> sampled;
  sampled.reserve(configs.size());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    config::Experiment experiment = variations[i].experiment;
    choose_recomputation(experiment);
    sampled.push_back({parse_compare_spec(configs[i], &first).config, variations[i].overrides,
                       std::move(experiment.constants), experiment.plan.recompute});
  }
  return sampled;
}

}  // namespace trainsim::cli
