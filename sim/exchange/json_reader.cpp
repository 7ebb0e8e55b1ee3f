// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/json_reader.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::exchange {

namespace {

[[noreturn]] void wrong(const std::string& path, const std::string& needs, const nlohmann::json& value) {
  throw InputError("error: " + path + " needs " + needs + ", not " + json_text(value));
}

/// "line 3, column 5" of a byte.
std::string place(const std::string& text, std::size_t byte) {
  const std::size_t end = std::min(byte > 0 ? byte - 1 : 0, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  const std::size_t start = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const std::size_t column = start == std::string::npos ? end + 1 : end - start;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

const nlohmann::json* JsonReader::find(const std::string& path) const {
  const nlohmann::json* value = &object_;
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    if (!value->is_object()) return nullptr;
    const auto found = value->find(path.substr(start, end - start));
    if (found == value->end() || found->is_null()) return nullptr;
    value = &*found;
    start = end + 1;
  }
  return value;
}

std::optional<std::int64_t> JsonReader::count(const std::string& path) const {
  const nlohmann::json* value = find(path);
  if (value == nullptr) return std::nullopt;
  constexpr double largest = 9e15;
  const double number = value->is_number() ? value->get<double>() : -1.0;
  if (number < 0 || number > largest || number != std::floor(number)) wrong(path, "a whole number", *value);
  return static_cast<std::int64_t>(number);
}

std::optional<double> JsonReader::number(const std::string& path) const {
  const nlohmann::json* value = find(path);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) wrong(path, "a number", *value);
  return value->get<double>();
}

std::optional<bool> JsonReader::flag(const std::string& path) const {
  const nlohmann::json* value = find(path);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong(path, "true or false", *value);
  return value->get<bool>();
}

std::optional<std::string> JsonReader::text(const std::string& path) const {
  const nlohmann::json* value = find(path);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong(path, "a text", *value);
  return value->get<std::string>();
}

bool JsonReader::is_auto(const std::string& path) const {
  const nlohmann::json* value = find(path);
  return value != nullptr && value->is_string() && value->get<std::string>() == "auto";
}

JsonReader parse_json(const std::string& text) {
  try {
    nlohmann::json object = nlohmann::json::parse(text, nullptr, true, true);
    if (!object.is_object()) throw InputError("error: is JSON, but no object ({…})");
    return JsonReader(std::move(object));
  } catch (const nlohmann::json::parse_error& error) {
    throw InputError("error: is no JSON: it goes wrong at " + place(text, error.byte));
  }
}

std::string json_text(const nlohmann::json& value) {
  constexpr std::size_t longest = 60;
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return config::clip(text, longest);
}

}  // namespace trainsim::exchange
