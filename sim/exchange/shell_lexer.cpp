// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/shell_lexer.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/base/diagnostics.hpp"

namespace trainsim::exchange {

namespace {

constexpr std::string_view kOperatorLetters = ";&|()<>";

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r';
}

/// The position behind the bracket that closes the one at `start`, or npos. Quotes inside are respected.
std::size_t end_of_brackets(const std::string& text, std::size_t start, char close, int nesting) {
  const char open = text[start];
  int depth = 0;
  std::size_t at = start;
  while (at < text.size()) {
    const char letter = text[at];
    if (letter == '\\') {
      ++at;
    } else if (letter == '\'' || letter == '"' || letter == '`') {
      at = end_of_group(text, at, nesting + 1);
      if (at == std::string::npos) return at;
      continue;
    } else if (letter == open) {
      ++depth;
    } else if (letter == close && --depth == 0) {
      return at + 1;
    }
    ++at;
  }
  return std::string::npos;
}

/// A here-document that was announced and whose text is still to come.
struct Announced {
  std::string end;
  bool literal = false;
  bool tabs = false;
};

class Lexer {
 public:
  Lexer(const std::string& text, std::string name) : text_(text), name_(std::move(name)) {}

  std::vector<ShellToken> run() {
    while (at_ < text_.size()) step();
    add({ShellToken::Kind::kNewline, "\n"});
    return std::move(tokens_);
  }

 private:
  void add(ShellToken token) {
    token.line = line_;
    tokens_.push_back(std::move(token));
  }

  void step() {
    const char letter = text_[at_];
    if (is_blank(letter)) {
      ++at_;
    } else if (letter == '\\' && at_ + 1 < text_.size() &&
               (text_[at_ + 1] == '\n' || text_[at_ + 1] == '\r')) {
      at_ += text_[at_ + 1] == '\r' ? 3 : 2;
      ++line_;
    } else if (letter == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (letter == '\n') {
      add({ShellToken::Kind::kNewline, "\n"});
      ++at_;
      ++line_;
      take_documents();
    } else if (text_.compare(at_, 2, "<<") == 0 && text_.compare(at_, 3, "<<<") != 0) {
      announce_document();
    } else if (kOperatorLetters.find(letter) != std::string_view::npos) {
      take_operator();
    } else {
      take_word();
    }
  }

  void take_operator() {
    std::size_t size = 1;
    if (at_ + 1 < text_.size() && text_[at_ + 1] == text_[at_] && text_[at_] != '(' && text_[at_] != ')')
      size = 2;
    // 2>&1 and &> are one operator each.
    if (text_.compare(at_, 2, ">&") == 0 || text_.compare(at_, 2, "&>") == 0) size = 2;
    add({ShellToken::Kind::kOperator, text_.substr(at_, size)});
    at_ += size;
  }

  [[noreturn]] void never_closed(std::size_t start) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(start), '\n');
    const std::size_t size = text_[start] == '$' ? 2 : 1;
    throw InputError(name_ + ":" + std::to_string(line) + ": error: " + text_.substr(start, size) +
                     " is never closed; this is no complete shell script");
  }

  /// The text of one word, quotes and all.
  std::string word_text() {
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      const char letter = text_[at_];
      const bool group =
          letter == '\'' || letter == '"' || letter == '`' ||
          (letter == '$' && at_ + 1 < text_.size() && (text_[at_ + 1] == '{' || text_[at_ + 1] == '('));
      if (group) {
        const std::size_t end = end_of_group(text_, at_);
        if (end == std::string::npos) never_closed(at_);
        at_ = end;
      } else if (letter == '\\') {
        at_ += 2;
      } else if (is_blank(letter) || letter == '\n' ||
                 kOperatorLetters.find(letter) != std::string_view::npos) {
        break;
      } else {
        ++at_;
      }
    }
    at_ = std::min(at_, text_.size());
    std::string word = text_.substr(start, at_ - start);
    line_ += static_cast<int>(std::count(word.begin(), word.end(), '\n'));
    return word;
  }

  void take_word() {
    ShellToken token;
    token.text = word_text();
    // The 2 of 2>&1 is no word.
    const bool number = token.text.find_first_not_of("0123456789") == std::string::npos;
    if (number && at_ < text_.size() && (text_[at_] == '>' || text_[at_] == '<')) return;
    const bool array = token.text.ends_with('=') && at_ < text_.size() && text_[at_] == '(';
    if (array) {
      token.kind = ShellToken::Kind::kArray;
      const std::size_t end = end_of_brackets(without_comments(at_), 0, ')', 0);
      if (end == std::string::npos) never_closed(at_);
      ++at_;
      take_items(token);
    }
    add(std::move(token));
  }

  /// The rest of the text with comments blanked, so that quotes inside of them count for nothing.
  std::string without_comments(std::size_t start) const {
    std::string rest = text_.substr(start);
    bool comment = false;
    char quote = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const char letter = rest[i];
      if (letter == '\n') comment = false;
      if (comment) {
        rest[i] = ' ';
      } else if (quote != 0) {
        if (letter == quote) quote = 0;
      } else if (letter == '\'' || letter == '"') {
        quote = letter;
      } else if (letter == '#' && i > 0 && (is_blank(rest[i - 1]) || rest[i - 1] == '\n')) {
        comment = true;
        rest[i] = ' ';
      }
    }
    return rest;
  }

  void take_items(ShellToken& token) {
    while (at_ < text_.size() && text_[at_] != ')') {
      const char letter = text_[at_];
      if (letter == '\n') {
        ++line_;
        ++at_;
      } else if (is_blank(letter)) {
        ++at_;
      } else if (letter == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        ++line_;
        at_ += 2;
      } else if (letter == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (kOperatorLetters.find(letter) != std::string_view::npos) {
        // Placeholders such as <path>, which no shell would take, are kept as text.
        token.items.emplace_back(1, letter);
        ++at_;
      } else {
        token.items.push_back(word_text());
      }
    }
    ++at_;
  }

  void announce_document() {
    at_ += 2;
    Announced document;
    document.tabs = text_[at_] == '-';
    if (document.tabs) ++at_;
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    std::string end = word_text();
    document.literal = end.find_first_of("'\"\\") != std::string::npos;
    std::erase_if(end, [](char letter) { return letter == '\'' || letter == '"' || letter == '\\'; });
    document.end = std::move(end);
    announced_.push_back(std::move(document));
  }

  void take_documents() {
    for (const Announced& document : announced_) {
      ShellToken token;
      token.kind = ShellToken::Kind::kDocument;
      token.literal = document.literal;
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        ++line_;
        if (document.tabs) line.erase(0, line.find_first_not_of('\t'));
        if (line == document.end) break;
        token.text += line;
        token.text += '\n';
      }
      add(std::move(token));
    }
    announced_.clear();
  }

  const std::string& text_;
  std::string name_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<ShellToken> tokens_;
  std::vector<Announced> announced_;
};

}  // namespace

std::size_t end_of_group(const std::string& text, std::size_t start, int depth) {
  constexpr int deepest = 50;
  if (depth > deepest) return std::string::npos;
  const char first = text[start];
  if (first == '$') return end_of_brackets(text, start + 1, text[start + 1] == '{' ? '}' : ')', depth);
  if (first == '\'') {
    const std::size_t end = text.find('\'', start + 1);
    return end == std::string::npos ? end : end + 1;
  }
  // Double quotes or a backquote: to the next one that is not escaped and not inside of $(…) or ${…}.
  std::size_t at = start + 1;
  while (at < text.size()) {
    if (text[at] == '\\') {
      at += 2;
    } else if (text[at] == first) {
      return at + 1;
    } else if (first == '"' && text[at] == '$' && at + 1 < text.size() &&
               (text[at + 1] == '{' || text[at + 1] == '(')) {
      at = end_of_group(text, at, depth + 1);
      if (at == std::string::npos) return at;
    } else {
      ++at;
    }
  }
  return std::string::npos;
}

std::vector<ShellToken> shell_tokens(const std::string& text, const std::string& name) {
  return Lexer(text, name).run();
}

}  // namespace trainsim::exchange
