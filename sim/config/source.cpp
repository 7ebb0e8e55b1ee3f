// SPDX-License-Identifier: Apache-2.0
#include "sim/config/source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "sim/config/report.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;
/// An editor that writes tabs writes them on every line; a few show what is wrong.
constexpr std::size_t kMostTabs = 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Something in a text that keeps it from being parsed, at a byte offset.
struct Fault {
  std::size_t offset;
  std::string message;
};

std::string hex(unsigned char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return std::string("0x") + digits[byte >> 4] + digits[byte & 15];
}

std::string encoding_message(std::string_view text, std::size_t offset) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return "the file is UTF-16; save it as UTF-8";
  }
  return "byte " + hex(static_cast<unsigned char>(text[offset])) + " is not UTF-8; save the file as UTF-8";
}

std::optional<Fault> encoding_fault(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = code_point_bytes(text.substr(i));
    if (bytes == 0) return Fault{i, encoding_message(text, i)};
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
    if (control) return Fault{i, "control character " + hex(byte) + "; a configuration is plain text"};
    i += bytes;
  }
  return std::nullopt;
}

/// Offset of the first '#' of a line that starts a comment; the line's length when there is none. A '#'
/// inside quotes passes for one too, which only makes the search for tabs more lenient.
std::size_t comment_start(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool open = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
    if (line[i] == '#' && open) return i;
  }
  return line.size();
}

/// The first tab of each line that has one outside of comments; the first few lines only.
std::vector<Fault> tab_faults(std::string_view text) {
  std::vector<Fault> faults;
  for (std::size_t tab = text.find('\t'); tab != std::string_view::npos && faults.size() < kMostTabs;) {
    const std::size_t newline = text.rfind('\n', tab);
    const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    const std::size_t end = std::min(text.find('\n', tab), text.size());
    if (tab - start < comment_start(text.substr(start, end - start))) {
      faults.push_back({tab, "tab character; use spaces, YAML does not allow tabs here"});
    }
    tab = text.find('\t', end);
  }
  return faults;
}

/// `text` with "\n" for every kind of line end and without byte order mark.
std::string with_plain_lines(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    plain += text[i] == '\r' ? '\n' : text[i];
  }
  return plain;
}

/// Line and column (both 1-based, the column in bytes or code points) of an offset.
Position position_of(std::shared_ptr<const Source> source, std::string_view text, std::size_t offset,
                     bool bytes) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::string_view head = newline == std::string_view::npos ? before : before.substr(newline + 1);
  const std::size_t column = (bytes ? head.size() : count_code_points(head)) + 1;
  return {std::move(source), static_cast<int>(line), static_cast<int>(column)};
}

void report_file(const std::filesystem::path& path, int order, const std::string& message, Report& report) {
  report.add({std::make_shared<Source>(path.string(), "", "", order)}, "", message);
}

/// The bytes of a file, one more than the limit at most; nothing when it cannot be read.
std::optional<std::string> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes;
  std::array<char, 65536> block{};
  while (bytes.size() <= kMaxFileBytes && file.read(block.data(), block.size()).gcount() > 0) {
    bytes.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return std::nullopt;
  return bytes;
}

/// `read_bytes`, but what is no regular file is kept: a pipe can be read only once, and what simulates
/// variants of a configuration reads it again.
std::optional<std::string> read_or_recall(const std::filesystem::path& path, bool regular) {
  static std::map<std::filesystem::path, std::string> kept;
  if (regular) return read_bytes(path);
  const auto found = kept.find(path);
  if (found != kept.end()) return found->second;
  std::optional<std::string> bytes = read_bytes(path);
  if (bytes) kept.emplace(path, *bytes);
  return bytes;
}

}  // namespace

Source::Source(std::string name, std::filesystem::path folder, std::string text, int order)
    : name_(std::move(name)), folder_(std::move(folder)), text_(std::move(text)), order_(order), starts_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') starts_.push_back(i + 1);
  }
}

std::string_view Source::line(int number) const {
  if (number < 1 || static_cast<std::size_t>(number) > starts_.size()) return {};
  const std::size_t start = starts_[static_cast<std::size_t>(number) - 1];
  const std::size_t end = std::min(text_.find('\n', start), text_.size());
  return std::string_view(text_).substr(start, end - start);
}

std::string_view Source::rest(int line, int column) const {
  if (line < 1 || static_cast<std::size_t>(line) > starts_.size()) return {};
  const std::size_t start =
      starts_[static_cast<std::size_t>(line) - 1] + static_cast<std::size_t>(column) - 1;
  return std::string_view(text_).substr(std::min(start, text_.size()));
}

bool check_text(const std::string& text, const std::string& name, int order, Report& report) {
  if (const std::optional<Fault> fault = encoding_fault(text)) {
    // The text cannot be shown, so the source goes without it.
    auto source = std::make_shared<Source>(name, "", "", order);
    report.add(position_of(source, text, fault->offset, false), "", fault->message);
    return false;
  }
  const std::vector<Fault> faults = tab_faults(text);
  if (faults.empty()) return true;
  const auto source = std::make_shared<Source>(name, "", text, order);
  for (const Fault& fault : faults) {
    report.add(position_of(source, text, fault.offset, true), "", fault.message);
  }
  return false;
}

std::shared_ptr<const Source> read_source(const std::filesystem::path& path, int order, Report& report) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    report_file(path, order, "this is a directory, not a file", report);
    return nullptr;
  }
  const bool regular = std::filesystem::is_regular_file(path, error);
  errno = 0;
  const std::optional<std::string> bytes = read_or_recall(path, regular);
  if (!bytes) {
    const std::string reason = errno == ENOENT ? "no such file" : std::strerror(errno);
    report_file(path, order, "cannot be read: " + reason, report);
    return nullptr;
  }
  if (bytes->size() > kMaxFileBytes) {
    report_file(path, order, "larger than 16 MiB, too large for a configuration", report);
    return nullptr;
  }
  std::string text = with_plain_lines(*bytes);
  if (!check_text(text, path.string(), order, report)) return nullptr;
  // Relative paths in what comes through a pipe or from standard input start from the working directory.
  const std::filesystem::path folder = regular ? path.parent_path() : std::filesystem::path();
  return std::make_shared<Source>(path.string(), folder, std::move(text), order);
}

}  // namespace trainsim::config
