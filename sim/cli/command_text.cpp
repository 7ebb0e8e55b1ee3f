// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/command_text.hpp"

namespace trainsim::cli {

namespace {

/// An argument as a shell takes it.
std::string quoted(const std::string& argument) {
  const bool plain = !argument.empty() && argument.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-./=:,+@%") == std::string::npos;
  if (plain) return argument;
  std::string text = "'";
  for (const char c : argument) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text.push_back(c);
    }
  }
  text.push_back('\'');
  return text;
}

}  // namespace

CommandText& CommandText::argument(const std::string& argument) {
  text_.append(" ").append(quoted(argument));
  return *this;
}

CommandText& CommandText::option(const std::string& name, const std::vector<std::string>& values) {
  for (const std::string& value : values) option(name, value);
  return *this;
}

CommandText& CommandText::option(const std::string& name, const std::string& value) {
  if (!value.empty()) text_.append(" ").append(name).append(" ").append(quoted(value));
  return *this;
}

CommandText& CommandText::flag(const std::string& name, bool given) {
  if (given) text_.append(" ").append(name);
  return *this;
}

CommandText& CommandText::subject(const Subject& subject) {
  return argument(subject.name).option("--set", subject.overrides);
}

}  // namespace trainsim::cli
