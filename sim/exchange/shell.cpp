// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/shell.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/exchange/shell_expansion.hpp"
#include "sim/exchange/shell_lexer.hpp"

namespace trainsim::exchange {

namespace {

using Words = std::vector<std::string>;
using Kind = ShellToken::Kind;

/// Whether a text begins with NAME= or NAME+=; `size` is set to the length of the name.
bool is_assignment(const std::string& word, std::size_t& size) {
  size = 0;
  while (size < word.size() &&
         (std::isalnum(static_cast<unsigned char>(word[size])) != 0 || word[size] == '_'))
    ++size;
  const bool named = size > 0 && std::isdigit(static_cast<unsigned char>(word[0])) == 0;
  return named && (word.compare(size, 1, "=") == 0 || word.compare(size, 2, "+=") == 0);
}

/// Whether a text matches a pattern of `case` or [[ ]], in which only * is special.
bool matches(const std::string& text, const std::string& pattern) {
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::size_t star = std::string::npos;
  std::size_t behind_star = 0;
  while (at < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      behind_star = at;
    } else if (in_pattern < pattern.size() && pattern[in_pattern] == text[at]) {
      ++at;
      ++in_pattern;
    } else if (star != std::string::npos) {
      // Let the last star take one letter more.
      in_pattern = star + 1;
      at = ++behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string::npos;
}

/// One comparison, as in [ a == b ], -z, ! and tests of files, which hold.
bool compare(Words words) {
  if (!words.empty() && words[0] == "!") {
    words.erase(words.begin());
    return !compare(std::move(words));
  }
  if (words.size() == 1) return !words[0].empty();
  if (words.size() == 2 && words[0] == "-z") return words[1].empty() || is_open(words[1]);
  if (words.size() == 2 && words[0] == "-n") return !words[1].empty() && !is_open(words[1]);
  if (words.size() == 3) {
    const std::string& operation = words[1];
    if (operation == "=" || operation == "==") return matches(words[0], words[2]);
    if (operation == "!=") return !matches(words[0], words[2]);
    const auto left = shell_arithmetic(words[0]);
    const auto right = shell_arithmetic(words[2]);
    if (left && right) {
      if (operation == "-eq") return *left == *right;
      if (operation == "-ne") return *left != *right;
      if (operation == "-gt" || operation == ">") return *left > *right;
      if (operation == "-ge" || operation == ">=") return *left >= *right;
      if (operation == "-lt" || operation == "<") return *left < *right;
      if (operation == "-le" || operation == "<=") return *left <= *right;
    }
    return false;
  }
  return words.size() == 2 && words[0].size() == 2 && words[0][0] == '-';
}

/// Follows the tokens of a script.
class Follower {
 public:
  Follower(ShellScript& script, const std::set<std::string>& fixed, std::string name)
      : script_(script), fixed_(fixed), name_(std::move(name)) {}

  void run(const std::string& text, int depth) {
    depth_ = depth;
    tokens_ = shell_tokens(text, name_);
    at_ = 0;
    list(true, {});
  }

 private:
  bool done() const { return at_ >= tokens_.size(); }
  const ShellToken& token() const { return tokens_[at_]; }
  bool is_word(const std::string& word) const {
    return !done() && token().kind == Kind::kWord && token().text == word;
  }
  bool is_operator(const std::string& text) const {
    return !done() && token().kind == Kind::kOperator && token().text == text;
  }

  /// Statements up to one of the words `ends`, or to the end. Nothing is followed unless `active`.
  void list(bool active, const std::set<std::string>& ends) {
    constexpr int deepest_block = 100;
    if (++blocks_ > deepest_block)
      throw InputError(name_ + ": error: blocks nest more than 100 deep; this is no launch script");
    while (!done()) {
      if (token().kind == Kind::kWord && ends.count(token().text) > 0) break;
      if (is_operator(";;") && ends.count(";;") > 0) break;
      const std::size_t before = at_;
      statement(active);
      // A word that ends a block where there is none.
      if (at_ == before) ++at_;
    }
    --blocks_;
  }

  void statement(bool active) {
    if (token().kind == Kind::kDocument) {
      if (active) script_.documents.push_back(token().literal ? token().text : expand_document(token().text));
      ++at_;
    } else if (token().kind == Kind::kNewline || token().kind == Kind::kOperator) {
      ++at_;
    } else if (is_word("if")) {
      branch(active);
    } else if (is_word("case")) {
      choice(active);
    } else if (is_word("for") || is_word("while") || is_word("until")) {
      loop(active);
    } else if (is_word("function") || is_function()) {
      function(active);
    } else {
      command(active);
    }
  }

  bool is_function() const {
    return at_ + 2 < tokens_.size() && token().kind == Kind::kWord &&
           tokens_[at_ + 1].kind == Kind::kOperator && tokens_[at_ + 1].text == "(" &&
           tokens_[at_ + 2].text == ")";
  }

  void note(const std::string& what) {
    script_.notes.push_back(name_ + ", line " + std::to_string(token().line) + ": " + what);
  }

  /// Skips "; then" or "; do" before a block.
  void skip_to(const std::string& word) {
    while (!done() && !is_word(word)) ++at_;
    if (!done()) ++at_;
  }

  /// Statements of a branch that may be skipped although nobody knows whether the run skips it.
  void branch_list(bool active, const std::set<std::string>& doubts, const std::set<std::string>& ends) {
    if (!active) doubts_.push_back(doubts);
    list(active, ends);
    if (!active) doubts_.pop_back();
  }

  void branch(bool active) {
    bool open = active;
    std::set<std::string> doubts;
    ++at_;
    while (!done()) {
      const bool holds = open && condition("then", doubts);
      if (!open) skip_to("then");
      branch_list(holds, doubts, {"elif", "else", "fi"});
      if (holds) open = false;
      if (is_word("elif")) {
        ++at_;
        continue;
      }
      if (is_word("else")) {
        ++at_;
        branch_list(open, doubts, {"fi"});
      }
      if (!done()) ++at_;
      return;
    }
  }

  /// The truth of what stands before `end`, which is skipped. Commands other than tests are taken to succeed.
  /// Open variables of it are added to `doubts`.
  bool condition(const std::string& end, std::set<std::string>& doubts) {
    bool value = true;
    std::string joined = "&&";
    while (!done() && !is_word(end)) {
      if (token().kind == Kind::kOperator || token().kind == Kind::kNewline) {
        if (token().text == "&&" || token().text == "||") joined = token().text;
        ++at_;
        continue;
      }
      const bool holds = one_condition(end, doubts);
      value = joined == "&&" ? value && holds : value || holds;
    }
    if (!done()) ++at_;
    return value;
  }

  bool one_condition(const std::string& end, std::set<std::string>& doubts) {
    bool negated = false;
    while (is_word("!")) {
      negated = !negated;
      ++at_;
    }
    const bool test = is_word("[") || is_word("[[") || is_word("test");
    if (test) ++at_;
    std::vector<Words> parts(1);
    std::vector<std::string> joints;
    while (!done() && !is_word(end) && token().kind != Kind::kNewline && !is_operator(";")) {
      const std::string& text = token().text;
      if (test && (text == "]" || text == "]]")) {
        ++at_;
        break;
      }
      const bool joint = text == "&&" || text == "||" || (test && (text == "-a" || text == "-o"));
      if (joint && !test) break;
      if (joint) {
        joints.push_back(text);
        parts.emplace_back();
      } else if (token().kind == Kind::kOperator) {
        parts.back().push_back(text);
      } else {
        parts.back().push_back(expand_text(text, script_.variables));
        if (test) doubts.merge(open_variables(parts.back().back()));
      }
      ++at_;
    }
    if (!test) return !negated;
    bool value = compare(parts[0]);
    for (std::size_t i = 0; i < joints.size(); ++i) {
      const bool both = joints[i] == "&&" || joints[i] == "-a";
      value = both ? value && compare(parts[i + 1]) : value || compare(parts[i + 1]);
    }
    return value != negated;
  }

  void choice(bool active) {
    ++at_;
    const std::string subject = done() ? "" : expand_text(token().text, script_.variables);
    const std::set<std::string> doubts = active ? open_variables(subject) : std::set<std::string>();
    skip_to("in");
    bool open = active;
    while (!done() && !is_word("esac")) {
      if (token().kind == Kind::kNewline || is_operator("(") || is_operator(";;")) {
        ++at_;
        continue;
      }
      bool holds = false;
      while (!done() && !is_operator(")")) {
        if (token().kind == Kind::kWord)
          holds = holds || matches(subject, expand_text(token().text, script_.variables));
        ++at_;
      }
      if (!done()) ++at_;
      branch_list(open && holds, doubts, {";;", "esac"});
      if (holds) open = false;
    }
    if (!done()) ++at_;
  }

  void loop(bool active) {
    if (active) note("the loop is gone through once");
    const bool counted = is_word("for");
    ++at_;
    const std::string name = done() ? "" : token().text;
    Words values;
    while (!done() && !is_word("do")) {
      if (token().kind == Kind::kWord && counted) {
        for (std::string& word : expand_word(token().text, script_.variables))
          values.push_back(std::move(word));
      }
      ++at_;
    }
    // NAME in VALUE …
    if (active && values.size() > 2 && values[1] == "in") assign(name, {values[2]}, false);
    if (!done()) ++at_;
    list(active, {"done"});
    if (!done()) ++at_;
  }

  void function(bool active) {
    if (active) note("the function is not followed");
    while (!done() && !is_word("{") && !is_operator("(")) ++at_;
    while (!done() && !is_word("{")) ++at_;
    if (!done()) ++at_;
    list(false, {"}"});
    if (!done()) ++at_;
  }

  /// Says of a variable that is not assigned here on what that hangs.
  void doubt(const std::string& name) {
    if (fixed_.count(name) > 0) return;
    for (const std::set<std::string>& doubts : doubts_) {
      if (!doubts.empty()) script_.hanging[name].insert(doubts.begin(), doubts.end());
    }
  }

  void assign(const std::string& name, Words values, bool adds) {
    if (fixed_.count(name) > 0) return;
    Words& variable = script_.variables[name];
    if (!adds) variable.clear();
    variable.insert(variable.end(), std::make_move_iterator(values.begin()),
                    std::make_move_iterator(values.end()));
  }

  /// NAME=value, NAME+=value or NAME=(…) at hand; false if there is none.
  bool assignment(bool active) {
    std::size_t size = 0;
    if (token().kind == Kind::kDocument || !is_assignment(token().text, size)) return false;
    const std::string name = token().text.substr(0, size);
    const bool adds = token().text[size] == '+';
    if (!active) doubt(name);
    if (active && token().kind == Kind::kArray) {
      Words values;
      for (const std::string& item : token().items) {
        for (std::string& word : expand_word(item, script_.variables)) values.push_back(std::move(word));
      }
      assign(name, std::move(values), adds);
    } else if (active) {
      std::string value = expand_text(token().text.substr(size + (adds ? 2 : 1)), script_.variables);
      const auto before = script_.variables.find(name);
      if (adds && before != script_.variables.end() && !before->second.empty())
        value.insert(0, before->second.front());
      assign(name, {std::move(value)}, false);
    }
    ++at_;
    return true;
  }

  /// A command up to the end of its statement.
  void command(bool active) {
    const std::set<std::string> prefixes = {"export", "declare", "local", "readonly", "typeset",
                                            "{",      "}",       "then",  "do"};
    Words words;
    bool only_assignments = true;
    while (!done() && token().kind != Kind::kNewline) {
      if (token().kind == Kind::kOperator) {
        const std::string operation = token().text;
        if (operation == ";;") return finish(active, std::move(words));
        ++at_;
        const bool redirects = operation.find_first_of("<>") != std::string::npos;
        if (!redirects) break;
        // Where the output goes is no word of the command; a blank to fill in such as <path> goes the same
        // way.
        if (!done() && token().kind == Kind::kWord) ++at_;
        continue;
      }
      if (only_assignments && words.empty()) {
        if (token().kind == Kind::kWord && prefixes.count(token().text) > 0) {
          ++at_;
          continue;
        }
        if (assignment(active)) continue;
      }
      only_assignments = false;
      if (token().kind == Kind::kDocument) break;
      if (active && token().kind == Kind::kWord) {
        for (std::string& word : expand_word(token().text, script_.variables))
          words.push_back(std::move(word));
      }
      ++at_;
    }
    finish(active, std::move(words));
  }

  void finish(bool active, Words words) {
    if (!active || words.empty()) return;
    std::string inner;
    if (words[0] == "eval") {
      for (std::size_t i = 1; i < words.size(); ++i) inner += (i > 1 ? " " : "") + words[i];
    }
    for (std::size_t i = 0; i + 2 < words.size() && inner.empty(); ++i) {
      const bool shell = words[i] == "bash" || words[i] == "sh";
      const bool commands = words[i + 1].starts_with('-') && words[i + 1].ends_with('c');
      if (shell && commands) inner = words[i + 2];
    }
    script_.commands.push_back(std::move(words));
    constexpr int deepest = 4;
    if (inner.empty() || depth_ >= deepest) return;
    try {
      Follower(script_, fixed_, name_).run(inner, depth_ + 1);
    } catch (const InputError&) {
      script_.notes.push_back(name_ + ": a command inside of a text is not complete and was left out");
    }
  }

  std::string expand_document(const std::string& text) const {
    // A here-document is expanded like text in double quotes, in which quotes are plain letters.
    std::string escaped = "\"";
    for (const char letter : text) {
      if (letter == '"') escaped += '\\';
      escaped += letter;
    }
    return expand_text(escaped + "\"", script_.variables);
  }

  ShellScript& script_;
  const std::set<std::string>& fixed_;
  std::string name_;
  int depth_ = 0;
  int blocks_ = 0;
  /// For each block around that is skipped, the open variables of the conditions that decide so.
  std::vector<std::set<std::string>> doubts_;
  std::vector<ShellToken> tokens_;
  std::size_t at_ = 0;
};

/// The words behind #SBATCH.
std::vector<std::string> batch_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    if (line.starts_with("#SBATCH ")) lines.push_back(line.substr(line.find(' ') + 1));
    start = end + 1;
  }
  return lines;
}

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}

/// The end of the name at `start`, which is `start` if there is none. Without braces a positional parameter
/// has one digit.
std::size_t end_of_name(const std::string& text, std::size_t start, bool braces) {
  if (!braces && start < text.size() && is_digit(text[start])) return start + 1;
  std::size_t end = start;
  while (end < text.size() && is_name_letter(text[end])) ++end;
  return end;
}

/// Adds names behind a dollar sign, and all names inside of arithmetic, which the text may be as a whole.
void add_used(const std::string& text, bool arithmetic, std::set<std::string>& names) {
  std::size_t arithmetic_end = arithmetic ? text.size() : 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool dollar = text[at] == '$';
    if (text.compare(at, 3, "$((") == 0)
      arithmetic_end = std::max(arithmetic_end, std::min(end_of_group(text, at), text.size()));
    if (!dollar && at >= arithmetic_end) continue;
    std::size_t start = at + (dollar ? 1 : 0);
    const bool braces = dollar && start < text.size() && text[start] == '{';
    if (braces) ++start;
    if (dollar && start < text.size() && (text[start] == '#' || text[start] == '!')) ++start;
    const std::size_t end = end_of_name(text, start, braces || !dollar);
    if (end == start) continue;
    // A number in arithmetic is no name.
    if (dollar || !is_digit(text[start])) names.insert(text.substr(start, end - start));
    at = end - 1;
  }
}

}  // namespace

std::set<std::string> used_variables(const std::string& text, const std::string& name) {
  std::set<std::string> names;
  const std::vector<ShellToken> tokens = shell_tokens(text, name);
  const auto is_operator = [&tokens](std::size_t i, const char* letter) {
    return i < tokens.size() && tokens[i].kind == Kind::kOperator && tokens[i].text == letter;
  };
  // Parentheses of ((…)) that are not closed yet.
  int open = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_operator(i, "(") && (open > 0 || is_operator(i + 1, "("))) ++open;
    if (is_operator(i, ")") && open > 0) --open;
    add_used(tokens[i].text, open > 0, names);
    for (const std::string& item : tokens[i].items) add_used(item, false, names);
  }
  return names;
}

std::set<std::string> inputs_of(const ShellScript& script, const std::string& variable) {
  std::set<std::string> inputs;
  std::set<std::string> seen;
  std::vector<std::string> left = {variable};
  while (!left.empty()) {
    const std::string name = left.back();
    left.pop_back();
    if (!seen.insert(name).second) continue;
    const auto found = script.hanging.find(name);
    // A condition may ask for the variable itself before it assigns it.
    if (found == script.hanging.end() || found->second.count(name) > 0) inputs.insert(name);
    if (found != script.hanging.end()) left.insert(left.end(), found->second.begin(), found->second.end());
  }
  if (inputs.empty()) inputs.insert(variable);
  return inputs;
}

void follow_script(ShellScript& script, const std::string& text, const std::string& name,
                   const std::map<std::string, std::string>& defined) {
  std::set<std::string> fixed;
  for (const auto& [variable, value] : defined) {
    script.variables[variable] = {value};
    fixed.insert(variable);
  }
  const std::vector<std::string> batch = batch_lines(text);
  script.batch_options.insert(script.batch_options.end(), batch.begin(), batch.end());
  Follower(script, fixed, name).run(text, 0);
}

}  // namespace trainsim::exchange
