// SPDX-License-Identifier: Apache-2.0
#include "sim/config/constants.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "sim/config/readers.hpp"
#include "sim/config/section.hpp"

namespace trainsim::config {

namespace {

const Words<Grade>& grades() {
  static const Words<Grade> words = {{"data sheet", Grade::kDataSheet},
                                     {"measured", Grade::kMeasured},
                                     {"fitted", Grade::kFitted},
                                     {"guess", Grade::kGuess}};
  return words;
}

/// A constant with a grade: a mapping that has a value.
bool is_constant(const Value& value) {
  return value.kind == Kind::kMap && value.find("value") != nullptr;
}

/// Reads constants and puts their values in their places.
class Taker {
 public:
  Taker(std::vector<Constant>& constants, Report& report) : constants_(constants), report_(report) {}

  void take(Value& value, const std::string& path) {
    if (is_constant(value)) {
      read(value, path);
      Value plain = value.find("value")->value;
      value = std::move(plain);
      return;
    }
    for (Entry& entry : value.entries) take(entry.value, join_path(path, entry.key));
  }

 private:
  void read(const Value& value, const std::string& path) {
    Constant constant;
    constant.path = path;
    const Value& amount = value.find("value")->value;
    constant.value = amount.text;
    read_grade(value, path, constant);
    for (const Entry& entry : value.entries) {
      if (entry.key == "value" || entry.key == "grade" || entry.key == "range") continue;
      report_.add(entry.at, join_path(path, entry.key), "unknown key; legal here: value, grade or range");
    }
    if (const Entry* range = value.find("range")) read_range(range->value, path, constant);
    constants_.push_back(std::move(constant));
  }

  void read_grade(const Value& value, const std::string& path, Constant& constant) {
    const Entry* grade = value.find("grade");
    if (grade == nullptr) {
      report_.add(value.at, join_path(path, "grade"),
                  "missing; it needs data sheet, measured, fitted or guess, for how the value is known");
      return;
    }
    const Parsed<Grade> parsed = as_choice(grades()).parse(grade->value);
    if (parsed.value) constant.grade = *parsed.value;
    if (!parsed.value) report_.add(grade->value.at, join_path(path, "grade"), parsed.error);
  }

  void read_range(const Value& range, const std::string& path, Constant& constant) {
    const std::string field = join_path(path, "range");
    const std::string expects =
        "needs two values with the unit of the constant, such as [0.7, 0.9] or [5 us, 9 us]";
    if (range.kind != Kind::kList || range.items.size() != 2) return report_.add(range.at, field, expects);
    const std::optional<Amount> nominal = split_amount(constant.value);
    const std::optional<Amount> low = split_amount(range.items[0].text);
    const std::optional<Amount> high = split_amount(range.items[1].text);
    if (!nominal || !low || !high || low->unit != nominal->unit || high->unit != nominal->unit) {
      return report_.add(range.at, field, expects);
    }
    if (low->number > nominal->number || high->number < nominal->number) {
      return report_.add(range.at, field, "does not hold the value " + constant.value);
    }
    constant.low = low->number;
    constant.nominal = nominal->number;
    constant.high = high->number;
    constant.unit = nominal->unit;
  }

  std::vector<Constant>& constants_;
  Report& report_;
};

}  // namespace

std::string to_string(Grade grade) {
  for (const auto& [word, meaning] : grades()) {
    if (meaning == grade) return word;
  }
  return "";
}

std::string Constant::text(double number) const {
  std::array<char, 40> digits{};
  // A count stays whole.
  const bool whole = unit.empty() && value.find_first_not_of("0123456789_") == std::string::npos;
  std::snprintf(digits.data(), digits.size(), "%.9g", whole ? std::round(number) : number);
  return digits.data() + (unit.empty() ? "" : " " + unit);
}

std::vector<Constant> take_constants(Value& root, const std::string& path, Report& report) {
  std::vector<Constant> constants;
  Taker(constants, report).take(root, path);
  return constants;
}

}  // namespace trainsim::config
