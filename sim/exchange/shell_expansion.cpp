// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/shell_expansion.hpp"

#include <cctype>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "sim/exchange/shell.hpp"
#include "sim/exchange/shell_lexer.hpp"

namespace trainsim::exchange {

namespace {

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// A text that only a real run would know.
std::string open_text(const std::string& name) {
  std::string text(1, kOpenBegin);
  text += '$';
  text += name;
  text += kOpenEnd;
  return text;
}

/// Sums and products of whole numbers; stops at the first thing that is neither.
class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}

  std::optional<std::int64_t> run() {
    const std::int64_t value = sum(0);
    skip();
    return good_ && at_ == text_.size() ? std::optional(value) : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool take(char letter) {
    skip();
    const bool there = at_ < text_.size() && text_[at_] == letter;
    if (there) ++at_;
    return there;
  }

  std::int64_t factor(int depth) {
    constexpr int deepest = 50;
    if (depth > deepest) good_ = false;
    if (!good_) return 0;
    if (take('-')) return -factor(depth + 1);
    if (take('(')) {
      const std::int64_t value = sum(depth + 1);
      if (!take(')')) good_ = false;
      return value;
    }
    skip();
    std::int64_t value = 0;
    const std::size_t start = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        good_ = false;
      ++at_;
    }
    if (at_ == start) good_ = false;
    return value;
  }

  std::int64_t product(int depth) {
    std::int64_t value = factor(depth);
    while (good_) {
      if (take('*')) {
        if (__builtin_mul_overflow(value, factor(depth), &value)) good_ = false;
      } else if (take('/')) {
        const std::int64_t divisor = factor(depth);
        good_ = good_ && divisor > 0;
        if (good_) value /= divisor;
      } else if (take('%')) {
        const std::int64_t divisor = factor(depth);
        good_ = good_ && divisor > 0;
        if (good_) value %= divisor;
      } else {
        break;
      }
    }
    return value;
  }

  std::int64_t sum(int depth) {
    std::int64_t value = product(depth);
    while (good_) {
      if (take('+')) {
        if (__builtin_add_overflow(value, product(depth), &value)) good_ = false;
      } else if (take('-')) {
        if (__builtin_sub_overflow(value, product(depth), &value)) good_ = false;
      } else {
        break;
      }
    }
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool good_ = true;
};

/// Expands one word.
class Expander {
 public:
  Expander(const std::string& word, const ShellVariables& variables, bool splits)
      : word_(word), variables_(variables), splits_(splits) {}

  std::vector<std::string> run() {
    while (at_ < word_.size()) step(false);
    finish();
    return std::move(words_);
  }

 private:
  /// Ends the word that is being built.
  void finish() {
    if (started_) words_.push_back(std::move(current_));
    current_.clear();
    started_ = false;
  }

  void append(const std::string& text) {
    current_ += text;
    started_ = true;
  }

  /// Text from a variable: split at blanks unless it is in quotes.
  void append_value(const std::string& text, bool in_quotes) {
    if (in_quotes || !splits_) return append(text);
    for (const char letter : text) {
      if (std::isspace(static_cast<unsigned char>(letter)) != 0) {
        finish();
      } else {
        append(std::string(1, letter));
      }
    }
  }

  void step(bool in_quotes) {
    const char letter = word_[at_];
    const std::size_t open_end = letter == kOpenBegin ? word_.find(kOpenEnd, at_) : std::string::npos;
    if (open_end != std::string::npos) {
      // An open value of a text that is expanded again, as by eval, stays one.
      append(word_.substr(at_, open_end + 1 - at_));
      at_ = open_end + 1;
    } else if (letter == '\\' && at_ + 1 < word_.size()) {
      const char next = word_[at_ + 1];
      if (next != '\n') {
        const bool kept = in_quotes && std::string_view("\"\\$`").find(next) == std::string_view::npos;
        append((kept ? "\\" : "") + std::string(1, next));
      }
      at_ += 2;
    } else if (letter == '\'' && !in_quotes) {
      const std::size_t end = end_of_group(word_, at_);
      if (end == std::string::npos) return rest_as_text();
      append(word_.substr(at_ + 1, end - at_ - 2));
      at_ = end;
    } else if (letter == '"' && !in_quotes) {
      const std::size_t end = end_of_group(word_, at_);
      if (end == std::string::npos) return rest_as_text();
      ++at_;
      started_ = true;
      while (at_ + 1 < end) step(true);
      at_ = end;
    } else if (letter == '`') {
      const std::size_t end = end_of_group(word_, at_);
      if (end == std::string::npos) return rest_as_text();
      at_ = end;
      append(open_text("(…)"));
    } else if (letter == '$' && at_ + 1 < word_.size()) {
      dollar(in_quotes);
    } else {
      append(std::string(1, letter));
      ++at_;
    }
  }

  /// What is never closed (only here-documents can hold such) stays as it is.
  void rest_as_text() {
    append(word_.substr(at_));
    at_ = word_.size();
  }

  void dollar(bool in_quotes) {
    const char next = word_[at_ + 1];
    if (next == '{' || next == '(') {
      const std::size_t end = end_of_group(word_, at_);
      if (end == std::string::npos) return rest_as_text();
      const std::string inside = word_.substr(at_ + 2, end - at_ - 3);
      at_ = end;
      if (next == '{') return braces(inside, in_quotes);
      if (inside.starts_with('(') && inside.ends_with(')')) return arithmetic(inside);
      return append(open_text("(…)"));
    }
    std::size_t end = at_ + 1;
    while (end < word_.size() && is_name_letter(word_[end])) ++end;
    // $1, $@, $# and the like are one letter long.
    const bool name = end > at_ + 1 && std::isdigit(static_cast<unsigned char>(next)) == 0;
    if (!name) end = at_ + 2;
    const std::string called = word_.substr(at_ + 1, end - at_ - 1);
    at_ = end;
    if (!name && !is_name_letter(next) && std::string_view("@*#?$!-").find(next) == std::string_view::npos)
      return append("$" + called);
    variable(called, false, in_quotes);
  }

  /// The value of a variable; all items of an array with `all`.
  void variable(const std::string& name, bool all, bool in_quotes) {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return append(open_text(name));
    const std::vector<std::string>& values = found->second;
    if (!all) return append_value(values.empty() ? "" : values.front(), in_quotes);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0 && splits_) finish();
      if (i > 0 && !splits_) append(" ");
      append_value(values[i], in_quotes);
      if (in_quotes) started_ = true;
    }
  }

  /// What is inside of ${…}.
  void braces(const std::string& inside, bool in_quotes) {
    std::size_t end = 0;
    while (end < inside.size() && is_name_letter(inside[end])) ++end;
    const std::string name = inside.substr(0, end);
    const std::string rest = inside.substr(end);
    if (rest.empty()) return variable(name, false, in_quotes);
    if (rest == "[@]" || rest == "[*]") return variable(name, true, in_quotes);
    const bool colon = rest.starts_with(":-") || rest.starts_with(":=");
    if (colon || rest.starts_with("-") || rest.starts_with("=")) {
      const auto found = variables_.find(name);
      const bool given =
          found != variables_.end() && (!colon || (!found->second.empty() && !found->second.front().empty()));
      if (given) return variable(name, false, in_quotes);
      const std::string otherwise = rest.substr(colon ? 2 : 1);
      const bool kept = in_quotes || otherwise.starts_with('"') || otherwise.starts_with('\'');
      return append_value(expand_text(otherwise, variables_), kept);
    }
    append(open_text(name.empty() ? "{…}" : name));
  }

  void arithmetic(const std::string& inside) {
    std::string expression;
    // Names stand for variables, with and without a dollar sign.
    const std::string plain = expand_text(inside, variables_);
    for (std::size_t i = 0; i < plain.size();) {
      if (std::isalpha(static_cast<unsigned char>(plain[i])) == 0 && plain[i] != '_') {
        expression += plain[i++];
        continue;
      }
      std::size_t end = i;
      while (end < plain.size() && is_name_letter(plain[end])) ++end;
      expression += expand_text("$" + plain.substr(i, end - i), variables_);
      i = end;
    }
    const std::optional<std::int64_t> value = shell_arithmetic(expression);
    if (value) return append(std::to_string(*value));
    const std::string open = open_variable(expression);
    append(open_text(open.empty() ? "((…))" : open));
  }

  const std::string& word_;
  const ShellVariables& variables_;
  bool splits_;
  std::size_t at_ = 0;
  std::string current_;
  bool started_ = false;
  std::vector<std::string> words_;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(const std::string& expression) {
  return Arithmetic(expression).run();
}

std::vector<std::string> expand_word(const std::string& word, const ShellVariables& variables) {
  return Expander(word, variables, true).run();
}

std::string expand_text(const std::string& word, const ShellVariables& variables) {
  const std::vector<std::string> words = Expander(word, variables, false).run();
  return words.empty() ? "" : words.front();
}

bool is_open(std::string_view text) {
  return text.find(kOpenBegin) != std::string_view::npos;
}

std::string show_open(const std::string& text) {
  std::string shown = text;
  std::erase_if(shown, [](char letter) { return letter == kOpenBegin || letter == kOpenEnd; });
  return shown;
}

std::string open_variable(const std::string& text) {
  const std::size_t start = text.find(kOpenBegin);
  if (start == std::string::npos) return "";
  const std::size_t end = text.find(kOpenEnd, start);
  std::string name = text.substr(start + 2, end - start - 2);
  for (const char letter : name) {
    if (!is_name_letter(letter)) return "";
  }
  return name;
}

std::set<std::string> open_variables(const std::string& text) {
  std::set<std::string> names;
  for (std::size_t start = text.find(kOpenBegin); start != std::string::npos;
       start = text.find(kOpenBegin, start + 1)) {
    const std::string name = open_variable(text.substr(start));
    if (!name.empty()) names.insert(name);
  }
  return names;
}

}  // namespace trainsim::exchange
