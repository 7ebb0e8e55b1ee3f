// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/translation.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <utility>

#include "sim/config/utf8.hpp"

namespace trainsim::exchange {

namespace {

/// Keys that a configuration must have, and what to do where a source has none.
struct Needed {
  std::string_view path;
  std::string_view cure;
};

constexpr std::array<Needed, 7> kNeeded = {
    {{"model.num_layers", "the number of layers"},
     {"model.hidden_size", "the width of the model"},
     {"model.num_attention_heads", "the number of query heads"},
     {"model.vocab_size", "the vocabulary of the tokenizer, such as 50257"},
     {"model.sequence_length", "tokens per sequence"},
     {"cluster", "a preset such as dgx-a100-80gb (see `trainsim list clusters`), or --cluster NAME"},
     {"gpus", "the number of GPUs, or --gpus N"}}};

constexpr std::array<std::string_view, 5> kSections = {"model", "plan", "software", "memory", "run"};

std::string section_of(std::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == std::string_view::npos ? "" : std::string(path.substr(0, dot));
}

std::string key_of(std::string_view path) {
  const std::size_t dot = path.find('.');
  return std::string(dot == std::string_view::npos ? path : path.substr(dot + 1));
}

/// Appends "key: value  # origin".
void append_line(std::string& text, const std::string& indent, const std::string& key,
                 const Setting& setting) {
  text += indent;
  text += key;
  text += ": ";
  text += setting.value;
  if (!setting.origin.empty()) {
    constexpr std::size_t longest = 100;
    text += "  # ";
    text += config::clip(setting.origin, longest);
  }
  text += '\n';
}

void append_missing(std::string& text, const std::string& indent, std::string_view path) {
  const auto* needed =
      std::find_if(kNeeded.begin(), kNeeded.end(), [&](const Needed& each) { return each.path == path; });
  text += indent;
  text += "# ";
  text += key_of(path);
  text += ":  # missing: ";
  text += needed->cure;
  text += '\n';
}

void append_section(std::string& text, const Translation& translation, std::string_view section,
                    const std::vector<std::string>& missing) {
  std::string lines;
  for (const Setting& setting : translation.settings()) {
    if (section_of(setting.path) == section) append_line(lines, "  ", key_of(setting.path), setting);
  }
  for (const std::string& path : missing) {
    if (section_of(path) == section) append_missing(lines, "  ", path);
  }
  if (const Setting* whole = translation.find(section))
    return append_line(text, "", std::string(section), *whole);
  if (lines.empty() && section != "plan") return;
  text += section;
  // A plan must be there; an empty one takes every default.
  text += lines.empty() ? ": {}\n" : ":\n";
  text += lines;
}

/// Options of one reason, as lines.
void append_remarks(std::vector<std::string>& lines, const Translation& translation, Reason reason,
                    const std::string& title) {
  std::string inline_list;
  std::vector<std::string> own_lines;
  for (const Remark& remark : translation.remarks()) {
    if (remark.reason != reason) continue;
    if (remark.why.empty()) {
      inline_list += inline_list.empty() ? "" : ", ";
      inline_list += remark.option;
    } else {
      std::string line = "  ";
      line += remark.option;
      line += ": ";
      line += remark.why;
      own_lines.push_back(std::move(line));
    }
  }
  if (inline_list.empty() && own_lines.empty()) return;
  lines.push_back(title + (inline_list.empty() ? "" : " " + inline_list));
  lines.insert(lines.end(), own_lines.begin(), own_lines.end());
}

/// Breaks a line at blanks so that comments stay readable.
std::string as_comment(const std::string& line) {
  constexpr std::size_t width = 116;
  std::istringstream words(line);
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  std::string text;
  std::string current = "#" + std::string(indent, ' ');
  std::string word;
  while (words >> word) {
    if (current.size() + word.size() + 1 > width) {
      text += current;
      text += '\n';
      current.assign(1, '#');
      current.append(indent + 2, ' ');
    }
    current += ' ';
    current += word;
  }
  return text + current + "\n";
}

}  // namespace

void Translation::set(const std::string& path, std::string value, std::string origin) {
  const auto found = std::find_if(settings_.begin(), settings_.end(),
                                  [&](const Setting& setting) { return setting.path == path; });
  if (found == settings_.end()) {
    settings_.push_back({path, std::move(value), std::move(origin)});
  } else {
    *found = {path, std::move(value), std::move(origin)};
  }
}

void Translation::set(const std::string& path, std::int64_t value, std::string origin) {
  set(path, std::to_string(value), std::move(origin));
}

void Translation::set(const std::string& path, bool value, std::string origin) {
  set(path, std::string(value ? "true" : "false"), std::move(origin));
}

const Setting* Translation::find(std::string_view path) const {
  const auto found = std::find_if(settings_.begin(), settings_.end(),
                                  [&](const Setting& setting) { return setting.path == path; });
  return found == settings_.end() ? nullptr : &*found;
}

void Translation::remark(Reason reason, std::string option, std::string why) {
  remarks_.push_back({reason, std::move(option), std::move(why)});
}

void Translation::assume(std::string text) {
  assumptions_.push_back(std::move(text));
}

void Translation::forget_remarks(std::string_view option) {
  std::erase_if(remarks_, [option](const Remark& remark) { return remark.option.starts_with(option); });
}

void Translation::add(const Translation& later, const std::string& name) {
  for (const Setting& setting : later.settings_) {
    const Setting* earlier = find(setting.path);
    const bool differs = earlier != nullptr && earlier->value != setting.value;
    if (differs && setting.is_default()) continue;
    if (differs && !earlier->is_default()) {
      std::string text = setting.path;
      text += " is ";
      text += earlier->value;
      text += earlier->origin.empty() ? "" : " (" + earlier->origin + ")";
      text += " in one file and ";
      text += setting.value;
      text += " in ";
      text += name;
      text += "; the latter is taken";
      assume(std::move(text));
    }
    set(setting.path, setting.value, setting.origin);
  }
  const auto in_model = [](const Setting& setting) { return section_of(setting.path) == "model"; };
  if (find("model") != nullptr && std::any_of(settings_.begin(), settings_.end(), in_model)) {
    assume("the shape of the model is taken from the file that has all of it, and not from the name " +
           find("model")->value);
    std::erase_if(settings_, [](const Setting& setting) { return setting.path == "model"; });
  }
  remarks_.insert(remarks_.end(), later.remarks_.begin(), later.remarks_.end());
  assumptions_.insert(assumptions_.end(), later.assumptions_.begin(), later.assumptions_.end());
}

std::vector<std::string> Translation::missing() const {
  std::vector<std::string> paths;
  const bool model_named = find("model") != nullptr;
  for (const Needed& needed : kNeeded) {
    const bool given = find(needed.path) != nullptr || (model_named && section_of(needed.path) == "model");
    if (!given) paths.emplace_back(needed.path);
  }
  return paths;
}

std::vector<std::string> report_lines(const Translation& translation) {
  std::vector<std::string> lines;
  const std::vector<std::string> missing = translation.missing();
  if (!missing.empty()) {
    std::string line = "Still missing:";
    for (const std::string& path : missing) line += " " + path + (path == missing.back() ? "" : ",");
    lines.push_back(std::move(line));
  }
  if (!translation.assumptions().empty()) lines.emplace_back("Assumed, because the source does not say:");
  for (const std::string& text : translation.assumptions()) lines.push_back("  " + text);
  append_remarks(lines, translation, Reason::kUnsupported,
                 "Not supported by this version, so that the result may differ:");
  append_remarks(lines, translation, Reason::kUnknown, "Unknown options:");
  append_remarks(lines, translation, Reason::kNoEffect, "Without effect on step time and memory:");
  return lines;
}

std::string to_yaml(const Translation& translation, const std::vector<std::string>& sources) {
  std::string names;
  for (const std::string& source : sources) names += (names.empty() ? "" : ", ") + source;
  std::string text = as_comment("Made by `trainsim import` from " + names + ".");
  const std::vector<std::string> missing = translation.missing();
  append_section(text, translation, kSections[0], missing);
  for (const char* key : {"cluster", "gpus"}) {
    if (const Setting* setting = translation.find(key)) append_line(text, "", key, *setting);
    if (translation.find(key) == nullptr) append_missing(text, "", key);
  }
  for (const std::string_view section : kSections) {
    if (section != kSections[0]) append_section(text, translation, section, missing);
  }
  for (const std::string& line : report_lines(translation)) {
    // What is missing stands where it belongs.
    if (!line.starts_with("Still missing:")) text += as_comment(line);
  }
  return text;
}

std::string quoted(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.' || letter == '/';
  });
  // A word that starts with a digit could be taken for a number.
  if (plain && std::isdigit(static_cast<unsigned char>(text[0])) == 0 && text[0] != '-') return text;
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'') quoted += letter;
    quoted += letter;
  }
  return quoted + "'";
}

std::string number_text(double number) {
  std::ostringstream stream;
  stream.precision(15);
  stream << number;
  return stream.str();
}

}  // namespace trainsim::exchange
