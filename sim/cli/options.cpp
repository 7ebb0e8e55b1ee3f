// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/options.hpp"

#include <optional>
#include <vector>

#include <CLI/CLI.hpp>

namespace trainsim::cli {

Option& Option::value(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::file() {
  option_->type_name("FILE")->check(
      [](const std::string& path) { return path.empty() ? "is empty; name a file" : ""; }, "");
  return *this;
}

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::repeatable() {
  option_->expected(1)->take_all();
  return *this;
}

Option& Option::comma_separated() {
  option_->delimiter(',')->allow_extra_args(false);
  return *this;
}

Option& Option::fallback(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option& Option::within(std::int64_t low, std::int64_t high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option& Option::within_reals(double low, double high) {
  option_->check(CLI::Range(low, high));
  // CLI11 compares with both ends, which says nothing of what is no number.
  option_->check(
      [](const std::string& text) {
        return CLI::detail::to_lower(text).find("nan") == std::string::npos ? "" : "is no number";
      },
      "");
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

template <typename Value>
Option Options::add(const std::string& names, Value& target, const std::string& help) {
  return Option(*app_->add_option(names, target, help));
}

Option Options::add_read(const std::string& names, const std::function<void(const std::string&)>& read,
                         const std::string& help) {
  return Option(*app_->add_option_function<std::string>(names, read, help));
}

Option Options::add_flag(const std::string& names, bool& target, const std::string& help) {
  return Option(*app_->add_flag(names, target, help));
}

template Option Options::add(const std::string&, std::string&, const std::string&);
template Option Options::add(const std::string&, std::size_t&, const std::string&);
template Option Options::add(const std::string&, std::int64_t&, const std::string&);
template Option Options::add(const std::string&, std::optional<std::int64_t>&, const std::string&);
template Option Options::add(const std::string&, std::optional<double>&, const std::string&);
template Option Options::add(const std::string&, std::vector<std::string>&, const std::string&);
template Option Options::add(const std::string&, std::vector<std::int64_t>&, const std::string&);

}  // namespace trainsim::cli
