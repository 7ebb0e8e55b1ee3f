// SPDX-License-Identifier: Apache-2.0
#include "sim/config/parser.hpp"

#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxAliases = 100;
constexpr std::size_t kMaxAliasValues = 100'000;
constexpr std::size_t kMaxValues = 1'000'000;

/// Stops the parser at something that is YAML, but not for us.
class Refused : public YAML::ParserException {
 public:
  Refused(const YAML::Mark& at, const std::string& message) : ParserException(at, message) {}
};

/// The library's messages in words that name a cure; it says the rest well enough itself.
const std::map<std::string_view, std::string_view> kExplanations = {
    {YAML::ErrorMsg::MAP_VALUE,
     "unexpected ':'; check the indentation here and the ':' of the line above, and quote text that contains "
     "': '"},
    {YAML::ErrorMsg::END_OF_MAP,
     "this line fits no mapping above it; check its indentation and that its key ends in ':'"},
    {YAML::ErrorMsg::END_OF_SEQ,
     "this line fits no list above it; check its indentation and that it begins with '- '"},
    {YAML::ErrorMsg::END_OF_MAP_FLOW, "a mapping in braces is not closed; a ',' or '}' is missing"},
    {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a list in brackets is not closed; a ',' or ']' is missing"},
    {YAML::ErrorMsg::FLOW_END, "closing bracket without an opening one"},
    {YAML::ErrorMsg::BLOCK_ENTRY, "unexpected list item; check its indentation"},
    {YAML::ErrorMsg::UNKNOWN_TOKEN, "no value can begin with this character; put the value in quotes"},
    {YAML::ErrorMsg::UNKNOWN_ANCHOR, "this alias names an anchor that is not defined above"},
};

std::string explain(const std::string& message) {
  const auto known = kExplanations.find(message);
  return known == kExplanations.end() ? "no valid YAML: " + message : std::string(known->second);
}

/// How large a value is, so that aliases can be counted without walking it.
struct Extent {
  std::size_t values = 1;
  std::size_t depth = 1;
};

/// A finished value.
struct Built {
  Value value;
  Extent extent;
};

/// A mapping or list whose end has not been seen yet.
struct Frame {
  Value value;
  YAML::anchor_t anchor = 0;
  Extent extent;
  /// The key whose value comes next.
  std::optional<Entry> key;
  std::unordered_map<std::string, Position> seen;
  /// What stands behind `<<`.
  std::vector<Value> merged;
};

/// Text after anchors and tags, which the parser counts to the value.
std::string_view skip_properties(std::string_view text) {
  while (text.starts_with('&') || text.starts_with('!')) {
    text.remove_prefix(std::min(text.find_first_of(" \n"), text.size()));
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  }
  return text;
}

/// Whether the quote that `text` opens with is closed in it. The library takes the end of the file for a
/// quote.
bool is_closed(std::string_view text) {
  const char quote = text.empty() ? '|' : text[0];
  if (quote != '"' && quote != '\'') return true;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool escape = quote == '"' && text[i] == '\\';
    const bool doubled = quote == '\'' && text.substr(i).starts_with("''");
    if (escape || doubled) {
      ++i;
    } else if (text[i] == quote) {
      return true;
    }
  }
  return false;
}

YAML::Mark mark_of(const Position& at) {
  YAML::Mark mark;
  mark.line = at.line - 1;
  mark.column = at.column - 1;
  return mark;
}

/// Turns the parser's events into a Value.
class TreeBuilder final : public YAML::EventHandler {
 public:
  /// `start` is where the text begins that is parsed.
  TreeBuilder(const Position& start, Report& report) : source_(start.source), start_(start), report_(report) {
    root_.value.at = start;
  }

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override { close(); }

  /// Where an error is: its mark, or what is still open when the mark is at the end of the text.
  Position place(const YAML::Mark& mark) const;
  /// The document, once the parser is done.
  Value take() { return std::move(root_.value); }

 private:
  Position position(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }
  bool wants_key() const {
    return !frames_.empty() && frames_.back().value.kind == Kind::kMap && !frames_.back().key;
  }
  std::string path() const;
  void check_tag(const YAML::Mark& mark, const std::string& tag) const;
  void count(const YAML::Mark& mark);
  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor);
  void close();
  void add(Built built, YAML::anchor_t anchor);
  void remember(const Built& built, YAML::anchor_t anchor);
  void add_key(const Built& built);
  void add_to_map(Frame& frame, Value value);
  void add_merged(Frame& frame);

  std::shared_ptr<const Source> source_;
  Position start_;
  Report& report_;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, Built> anchors_;
  Built root_;
  std::size_t documents_ = 0;
  std::size_t values_ = 0;
  std::size_t aliases_ = 0;
  std::size_t alias_values_ = 0;
  std::size_t anchored_values_ = 0;
};

void TreeBuilder::OnDocumentStart(const YAML::Mark& mark) {
  if (++documents_ == 1) return;
  const bool marked = source_->line(mark.line + 1).starts_with("---");
  throw Refused(mark, marked ? "a second document starts here; a configuration is one document"
                             : "unexpected text after the end of the document");
}

void TreeBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  count(mark);
  if (wants_key()) throw Refused(mark, "a key is missing before ':'");
  // The parser reports the end of the gap; the key is where a reader looks for the value.
  const bool keyed = !frames_.empty() && frames_.back().key;
  Value value;
  value.at = keyed ? frames_.back().key->at : position(mark);
  add({std::move(value), {}}, anchor);
}

void TreeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) throw Refused(mark, "this alias stands inside the value that it names");
  if (++aliases_ > kMaxAliases) throw Refused(mark, "more than 100 aliases; write the values out");
  alias_values_ += found->second.extent.values;
  if (alias_values_ > kMaxAliasValues) throw Refused(mark, "aliases expand to more than 100000 values");
  if (frames_.size() + found->second.extent.depth > kMaxDepth + 1) {
    throw Refused(mark, "this alias makes the value nested deeper than 32 levels");
  }
  add(found->second, 0);
}

void TreeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                           const std::string& text) {
  count(mark);
  check_tag(mark, tag);
  const bool quoted = tag == "!";
  if (quoted && !is_closed(skip_properties(source_->rest(mark.line + 1, mark.column + 1)))) {
    throw Refused(mark, "the quote that opens here is never closed");
  }
  Value value = make_scalar(text, position(mark));
  value.quoted = quoted;
  add({std::move(value), {}}, anchor);
}

void TreeBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                                  YAML::EmitterStyle::value /*style*/) {
  open(Kind::kList, mark, tag, anchor);
}

void TreeBuilder::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                             YAML::EmitterStyle::value /*style*/) {
  open(Kind::kMap, mark, tag, anchor);
}

Position TreeBuilder::place(const YAML::Mark& mark) const {
  if (mark.is_null()) return {source_, 0, 0};
  // At the end of the text some errors come with a mark of zeros, others with one behind the last line.
  const bool at_end =
      (mark.line == 0 && mark.column == 0) || source_->rest(mark.line + 1, mark.column + 1).empty();
  if (!at_end) return position(mark);
  return frames_.empty() ? start_ : frames_.back().value.at;
}

std::string TreeBuilder::path() const {
  std::string path;
  for (const Frame& frame : frames_) {
    if (frame.value.kind == Kind::kList) path += "[" + std::to_string(frame.value.items.size()) + "]";
    if (frame.key) path = join_path(path, frame.key->key);
  }
  return path;
}

void TreeBuilder::check_tag(const YAML::Mark& mark, const std::string& tag) const {
  if (tag.empty() || tag == "?" || tag == "!") return;
  throw Refused(mark, "tags such as !!str are not supported; write the plain value");
}

void TreeBuilder::count(const YAML::Mark& mark) {
  if (++values_ > kMaxValues) throw Refused(mark, "more than a million values, too many for a configuration");
}

void TreeBuilder::open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
  count(mark);
  check_tag(mark, tag);
  if (frames_.size() >= kMaxDepth) throw Refused(mark, "nested deeper than 32 levels");
  Frame frame;
  frame.value.kind = kind;
  frame.value.at = position(mark);
  frame.anchor = anchor;
  frames_.push_back(std::move(frame));
}

void TreeBuilder::close() {
  add_merged(frames_.back());
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  add({std::move(frame.value), frame.extent}, frame.anchor);
}

void TreeBuilder::add(Built built, YAML::anchor_t anchor) {
  if (anchor != 0) remember(built, anchor);
  if (frames_.empty()) {
    root_ = std::move(built);
    return;
  }
  if (wants_key()) {
    add_key(built);
    return;
  }
  Frame& frame = frames_.back();
  frame.extent.values += built.extent.values;
  frame.extent.depth = std::max(frame.extent.depth, built.extent.depth + 1);
  if (frame.value.kind == Kind::kList) {
    frame.value.items.push_back(std::move(built.value));
  } else {
    add_to_map(frame, std::move(built.value));
  }
}

void TreeBuilder::remember(const Built& built, YAML::anchor_t anchor) {
  anchored_values_ += built.extent.values;
  if (anchored_values_ > kMaxValues)
    throw Refused(mark_of(built.value.at), "anchors hold more than a million values");
  anchors_[anchor] = built;
}

void TreeBuilder::add_key(const Built& built) {
  const Value& key = built.value;
  if (key.kind != Kind::kScalar) throw Refused(mark_of(key.at), "a key must be a word, not " + describe(key));
  frames_.back().key = Entry{key.text, key.at, {}};
}

void TreeBuilder::add_to_map(Frame& frame, Value value) {
  Entry& key = *frame.key;
  const auto [first, is_new] = frame.seen.try_emplace(key.key, key.at);
  if (!is_new) {
    report_.add(key.at, path(),
                "duplicate key, already given in line " + std::to_string(first->second.line) +
                    "; remove one of the two");
  } else if (key.key == "<<") {
    frame.merged.push_back(std::move(value));
  } else {
    key.value = std::move(value);
    frame.value.entries.push_back(std::move(key));
  }
  frame.key.reset();
}

/// Copies what `<<` names into the mapping, below the mapping's own keys.
void TreeBuilder::add_merged(Frame& frame) {
  if (frame.merged.empty()) return;
  Value behind = std::move(frame.merged.front());
  std::vector<Value> maps;
  if (behind.kind == Kind::kList) {
    maps = std::move(behind.items);
  } else {
    maps.push_back(std::move(behind));
  }
  for (const Value& map : maps) {
    if (map.kind != Kind::kMap) report_.add(map.at, path(), "<< needs a mapping, not " + describe(map));
    for (const Entry& entry : map.entries) {
      if (frame.seen.try_emplace(entry.key, entry.at).second) frame.value.entries.push_back(entry);
    }
  }
}

}  // namespace

std::optional<Value> parse(const std::shared_ptr<const Source>& source, const std::string& text,
                           Report& report) {
  // Once the text is no YAML, what was found before it may be a consequence: it is dropped.
  Report found;
  const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
  TreeBuilder builder({source, 1, static_cast<int>(blanks) + 1}, found);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    report.append(found);
    return builder.take();
  } catch (const Refused& refused) {
    report.add(builder.place(refused.mark), "", refused.msg);
  } catch (const YAML::Exception& error) {
    report.add(builder.place(error.mark), "", explain(error.msg));
  }
  return std::nullopt;
}

std::optional<Value> parse_mapping(const std::shared_ptr<const Source>& source, Report& report) {
  std::optional<Value> value = parse(source, source->text(), report);
  if (!value || value->kind == Kind::kMap) return value;
  if (value->kind == Kind::kNull) {
    report.add({source, 0, 0}, "", "the file is empty; it needs a mapping (lines of 'key: value')");
  } else {
    report.add(value->at, "", "the file must be a mapping (lines of 'key: value'), not " + describe(*value));
  }
  return std::nullopt;
}

}  // namespace trainsim::config
