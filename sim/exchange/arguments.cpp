// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/arguments.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/config/quantity.hpp"
#include "sim/config/utf8.hpp"
#include "sim/exchange/shell.hpp"

namespace trainsim::exchange {

namespace {

/// Negative numbers are values; anything else with a dash in front is an option.
bool is_option(const std::string& word) {
  return word.starts_with("--") && word.size() > 2;
}

/// The value of an option that counts something.
std::int64_t counted(std::string_view option, const std::string& value) {
  const std::optional<std::int64_t> number = whole_number(value);
  if (!number || *number < 0)
    throw InputError("error: " + std::string(option) + " needs a whole number, not '" + config::clip(value) +
                     "'");
  return *number;
}

}  // namespace

std::string Argument::text() const {
  std::string text = name;
  constexpr std::size_t most_letters = 60;
  for (const std::string& value : values) {
    text += ' ';
    text += config::clip(show_open(value), most_letters);
  }
  return config::clip(text, 2 * most_letters);
}

Arguments::Arguments(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (is_option(word)) {
      const std::size_t equals = word.find('=');
      Argument argument;
      argument.name = word.substr(0, equals);
      std::replace(argument.name.begin(), argument.name.end(), '_', '-');
      if (equals != std::string::npos) argument.values.push_back(word.substr(equals + 1));
      std::erase_if(arguments_, [&](const Argument& earlier) { return earlier.name == argument.name; });
      arguments_.push_back(std::move(argument));
    } else if (!arguments_.empty()) {
      arguments_.back().values.push_back(word);
    }
  }
}

Argument* Arguments::find(std::string_view name) {
  const auto found = std::find_if(arguments_.begin(), arguments_.end(),
                                  [&](const Argument& argument) { return argument.name == name; });
  if (found == arguments_.end()) return nullptr;
  found->used = true;
  return &*found;
}

std::optional<std::string> Arguments::known(const std::string& option, const std::string& value) {
  if (!is_open(value)) return value;
  if (std::none_of(open_.begin(), open_.end(), [&](const auto& each) { return each.first == option; }))
    open_.emplace_back(option, value);
  return std::nullopt;
}

bool Arguments::has(std::string_view name) {
  return find(name) != nullptr;
}

bool Arguments::contains(std::string_view name) const {
  return std::any_of(arguments_.begin(), arguments_.end(),
                     [&](const Argument& argument) { return argument.name == name; });
}

std::optional<std::string> Arguments::value(std::string_view name) {
  const Argument* argument = find(name);
  if (argument == nullptr) return std::nullopt;
  if (argument->values.empty()) throw InputError("error: " + argument->name + " has no value");
  return known(argument->name, argument->values.front());
}

std::optional<std::int64_t> Arguments::count(std::string_view name) {
  const std::optional<std::string> text = value(name);
  if (!text) return std::nullopt;
  return counted(name, *text);
}

std::vector<std::int64_t> Arguments::counts(std::string_view name) {
  std::vector<std::int64_t> all;
  const std::vector<std::string> texts = values(name);
  if (texts.empty() && contains(name)) throw InputError("error: " + std::string(name) + " has no value");
  for (const std::string& text : texts) {
    if (const auto value = known(std::string(name), text)) all.push_back(counted(name, *value));
  }
  return all;
}

std::optional<double> Arguments::number(std::string_view name) {
  const std::optional<std::string> text = value(name);
  if (!text) return std::nullopt;
  // argparse takes ".1" too.
  const config::Parsed<double> number = config::parse_number(text->starts_with('.') ? "0" + *text : *text);
  if (!number.value)
    throw InputError("error: " + std::string(name) + " needs a number, not '" + config::clip(*text) + "'");
  return number.value;
}

std::vector<std::string> Arguments::values(std::string_view name) {
  const Argument* argument = find(name);
  return argument == nullptr ? std::vector<std::string>() : argument->values;
}

std::string Arguments::text(std::string_view name) const {
  const auto found = std::find_if(arguments_.begin(), arguments_.end(),
                                  [&](const Argument& argument) { return argument.name == name; });
  return found == arguments_.end() ? "" : found->text();
}

std::vector<Argument> Arguments::unused() const {
  std::vector<Argument> left;
  std::copy_if(arguments_.begin(), arguments_.end(), std::back_inserter(left),
               [](const Argument& argument) { return !argument.used; });
  return left;
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  // Unlike in our files, 08 is eight here, as in Python's int().
  std::string plain = text;
  const std::size_t zeros = plain.find_first_not_of('0');
  if (zeros != std::string::npos && zeros > 0 && plain.find_first_not_of("0123456789") == std::string::npos)
    plain.erase(0, zeros);
  return config::parse_count(plain).value;
}

}  // namespace trainsim::exchange
