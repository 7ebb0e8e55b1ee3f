// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/json_schema.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/config/experiment.hpp"
#include "sim/config/presets.hpp"
#include "sim/config/schema.hpp"

namespace trainsim::exchange {

namespace {

using config::Dimension;
using config::Form;
using config::SchemaKey;
using Json = nlohmann::ordered_json;

/// A part of the input that has files of its own: what `trainsim schema` calls it, its path, and the folder
/// of its presets.
struct Part {
  std::string_view kind;
  std::string_view path;
  std::string_view folder;
};

constexpr Part kParts[] = {{"model", "model", "models"},
                           {"cluster", "cluster", "topologies/clusters"},
                           {"gpu", "cluster.gpu", "topologies/gpus"},
                           {"node", "cluster.intra_node", "topologies/nodes"},
                           {"nic", "cluster.nic", "topologies/nics"},
                           {"fabric", "cluster.fabric", "topologies/fabrics"}};

const Part* part_at(const std::string& path) {
  const auto* found =
      std::find_if(std::begin(kParts), std::end(kParts), [&](const Part& part) { return part.path == path; });
  return found == std::end(kParts) ? nullptr : found;
}

/// A rule for texts that match.
Json pattern(const std::string& expression) {
  return {{"type", "string"}, {"pattern", expression}};
}

/// Units that quantities of a dimension have.
std::string units(Dimension dimension) {
  switch (dimension) {
    case Dimension::kSize:
      return "([kMGTP]|[KMGT]i)?B";
    case Dimension::kRate:
      return "(([kMGTP]|[KMGT]i)?B(/s|ps)|[kMGTP]?b(/s|ps|it/s))";
    case Dimension::kTime:
      return "(s|ms|us|µs|μs|ns)";
    case Dimension::kCompute:
      return "[kMGTP]?FLOP(/s|S)";
    case Dimension::kPower:
      return "(W|kW|MW)";
    case Dimension::kDuration:
      return "(s|min|h|d)";
    case Dimension::kCarbon:
      return "(g/kWh|kg/kWh|kg/MWh)";
  }
  return "";
}

/// A number as readers take it.
constexpr std::string_view kNumber = "[+-]?[0-9][0-9_]*(\\.[0-9][0-9_]*)?([eE][+-]?[0-9]+)?";

/// What may stand for a value of this form, as alternatives.
std::vector<Json> alternatives(const Form& form) {
  std::vector<Json> rules;
  if (!form.words.empty()) {
    Json words = Json::array();
    for (const std::string& word : form.words) {
      const bool digits = std::all_of(word.begin(), word.end(),
                                      [](unsigned char letter) { return std::isdigit(letter) != 0; });
      if (digits) words.push_back(std::stoll(word));
      words.push_back(word);
    }
    rules.push_back({{"enum", words}});
  }
  const std::string number(kNumber);
  switch (form.kind) {
    case Form::Kind::kChoice:
      break;
    case Form::Kind::kText:
      // Numbers and booleans are texts too.
      rules.push_back({{"type", Json::array({"string", "number", "boolean"})}});
      break;
    case Form::Kind::kFlag:
      rules.push_back({{"type", "boolean"}});
      break;
    case Form::Kind::kCount:
      rules.push_back(
          {{"type", "integer"}, {"minimum", std::llround(form.least)}, {"maximum", std::llround(form.most)}});
      rules.push_back(pattern("^" + number + "[kKMBT]?$"));
      break;
    case Form::Kind::kNumber: {
      Json rule = {{"type", "number"}};
      rule[form.least_is_legal ? "minimum" : "exclusiveMinimum"] = form.least;
      rule["maximum"] = form.most;
      rules.push_back(rule);
      rules.push_back(pattern("^" + number + "$"));
      break;
    }
    case Form::Kind::kQuantity:
      rules.push_back(pattern("^" + number + " *" + units(form.dimension) + "$"));
      break;
    case Form::Kind::kItems:
      rules.push_back({{"type", "array"}});
      break;
    case Form::Kind::kOther:
      rules.push_back({{"type", Json::array({"integer", "string"})}});
      break;
  }
  return rules;
}

/// One rule for several alternatives.
Json any_of(const std::vector<Json>& rules) {
  if (rules.size() == 1) return rules.front();
  return {{"anyOf", rules}};
}

/// A default as JSON: a number or boolean where it is one.
Json default_value(const std::string& text) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char letter) {
    return std::isdigit(letter) != 0;
  });
  constexpr std::size_t most_digits = 15;
  if (digits && text.size() <= most_digits) return std::stoll(text);
  if (text == "true" || text == "false") return text == "true";
  return text;
}

/// Writes the schema of a kind of file.
class Writer {
 public:
  Writer() : keys_(config::schema_keys()) {}

  Json write(const std::string& kind) {
    Json schema;
    schema["$schema"] = "http://json-schema.org/draft-07/schema#";
    schema["title"] = "trainsim " + kind;
    const auto* part = std::find_if(std::begin(kParts), std::end(kParts),
                                    [&](const Part& each) { return each.kind == kind; });
    const std::string path = part == std::end(kParts) ? "" : std::string(part->path);
    schema.update(mapping(path));
    schema["definitions"]["graded"] = graded();
    return schema;
  }

 private:
  /// A constant with its grade and range.
  static Json graded() {
    const Json scalar = {{"type", Json::array({"string", "number"})}};
    return {{"type", "object"},
            {"properties",
             {{"value", scalar},
              {"grade", {{"enum", {"data sheet", "measured", "fitted", "guess"}}}},
              {"range", {{"type", "array"}, {"items", scalar}, {"minItems", 2}, {"maxItems", 2}}}}},
            {"required", {"value", "grade"}},
            {"additionalProperties", false}};
  }

  /// Keys directly below a path, "" = the top.
  std::vector<const SchemaKey*> children(const std::string& path) const {
    std::vector<const SchemaKey*> found;
    const std::string start = path.empty() ? "" : path + ".";
    for (const SchemaKey& key : keys_) {
      const bool below = key.path.starts_with(start) && key.path.find('.', start.size()) == std::string::npos;
      if (below) found.push_back(&key);
    }
    return found;
  }

  /// Mappings of a cluster may change one thing of what they extend, so nothing has to be there.
  static bool may_be_partial(const std::string& path) { return path.starts_with("cluster."); }

  Json mapping(const std::string& path) {
    Json rule = {{"type", "object"}};
    const std::vector<const SchemaKey*> below = children(path);
    if (below.empty()) {
      // Notes with a text for each key.
      rule["additionalProperties"] = {{"type", Json::array({"string", "number", "boolean"})}};
      return rule;
    }
    const std::size_t start = path.empty() ? 0 : path.size() + 1;
    Json required = Json::array();
    const Part* part = part_at(path);
    if (part != nullptr) rule["properties"]["extends"] = extends(*part);
    for (const SchemaKey* key : below) {
      const std::string name = key->path.substr(start);
      rule["properties"][name] = value(*key);
      if (key->required) required.push_back(name);
    }
    rule["additionalProperties"] = false;
    if (required.empty() || may_be_partial(path)) return rule;
    if (part == nullptr) {
      rule["required"] = required;
    } else {
      rule["anyOf"] = Json::array({{{"required", Json::array({"extends"})}}, {{"required", required}}});
    }
    return rule;
  }

  static Json extends(const Part& part) {
    Json rule = named(part);
    rule["description"] = "a preset or file to start from; the other keys change it";
    return rule;
  }

  /// The name of a preset, or a path.
  static Json named(const Part& part) {
    const auto names = config::preset_names(config::presets_root() / part.folder);
    const Json preset = {{"enum", names}};
    return {{"anyOf", Json::array({preset, pattern("/|\\.ya?ml$|^[A-Za-z0-9._-]+$")})}};
  }

  /// What hovering over a key shows.
  std::string description(const SchemaKey& key) const {
    if (std::string text = documented(key.path); !text.empty()) return text;
    const std::string name = key.path.substr(key.path.rfind('.') + 1);
    if (name == "name" || name == "source") return "text for people";
    std::string parent = key.path.substr(0, std::min(key.path.rfind('.'), key.path.size()));
    if (parent.ends_with("[]")) parent.resize(parent.size() - 2);
    // Small mappings are explained as a whole.
    const bool small = parent.find('.') != std::string::npos;
    if (small && !documented(parent).empty()) return "of " + parent + ": " + documented(parent);
    if (!key.mapping) return "";
    std::string names;
    for (const SchemaKey* child : children(key.path)) {
      names += names.empty() ? "mapping with " : ", ";
      names += child->path.substr(key.path.size() + 1);
    }
    return names;
  }

  Json value(const SchemaKey& key) {
    std::vector<Json> rules;
    const Part* part = part_at(key.path);
    if (part != nullptr) rules.push_back(named(*part));
    if (key.list) {
      rules.push_back({{"type", "array"}, {"items", any_of(alternatives(*key.form))}});
    } else if (key.form) {
      rules = alternatives(*key.form);
      const bool constant = key.form->kind == Form::Kind::kQuantity ||
                            key.form->kind == Form::Kind::kNumber || key.form->kind == Form::Kind::kCount;
      if (constant && key.path.starts_with("cluster.")) rules.push_back({{"$ref", "#/definitions/graded"}});
    }
    if (key.mapping) rules.push_back(mapping(key.path));
    if (key.mappings) rules.push_back({{"type", "array"}, {"items", mapping(key.path + "[]")}});
    Json rule;
    if (const std::string text = description(key); !text.empty()) rule["description"] = text;
    if (!rules.empty()) rule.update(any_of(rules));
    if (key.fallback) rule["default"] = default_value(*key.fallback);
    return rule;
  }

  std::vector<SchemaKey> keys_;
};

}  // namespace

const std::vector<std::string>& schema_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> all = {"config"};
    for (const Part& part : kParts) all.emplace_back(part.kind);
    return all;
  }();
  return kinds;
}

std::string json_schema(const std::string& kind) {
  constexpr int indent = 2;
  return Writer().write(kind).dump(indent) + "\n";
}

}  // namespace trainsim::exchange
