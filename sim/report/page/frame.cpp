// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/frame.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace trainsim::report {

namespace {

/// Replaces every character that `replacement` has text for.
template <class Replacement>
std::string escaped(const std::string& text, const Replacement& replacement) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const std::string_view other = replacement(c);
    if (other.empty()) {
      result.push_back(c);
    } else {
      result.append(other);
    }
  }
  return result;
}

}  // namespace

std::string script_safe(const Json& json) {
  const auto unicode = [](char c) -> std::string_view {
    switch (c) {
      case '<':
        return "\\u003c";
      case '>':
        return "\\u003e";
      case '&':
        return "\\u0026";
      default:
        return "";
    }
  };
  return escaped(json.dump(-1, ' ', false, Json::error_handler_t::replace), unicode);
}

std::string html_safe(const std::string& text) {
  const auto entity = [](char c) -> std::string_view {
    switch (c) {
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '&':
        return "&amp;";
      case '"':
        return "&quot;";
      case '\'':
        return "&#39;";
      default:
        return "";
    }
  };
  return escaped(text, entity);
}

std::string framed(const PageTemplate& page, const PageFrame& frame, Json data) {
  data["page"] = page.name;
  data["kind"] = frame.kind;
  data["name"] = frame.name;
  data["description"] = frame.description;
  data["command"] = frame.command;
  data["version"] = frame.version;
  // A name that is not UTF-8 keeps what can be kept of it.
  const std::string name = Json(frame.name).dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::array<std::pair<std::string_view, std::string>, 4> parts = {
      {{"@TITLE@", html_safe(Json::parse(name).get<std::string>())},
       {"@SECTIONS@", std::string(page.sections)},
       {"@DATA@", script_safe(data)},
       {"@SCRIPT@", std::string(page.script)}}};
  std::string html;
  std::string_view rest = kPageFrame;
  for (const auto& [mark, text] : parts) {
    const std::size_t at = rest.find(mark);
    html += rest.substr(0, at);
    html += text;
    rest.remove_prefix(at + mark.size());
  }
  return html.append(rest);
}

}  // namespace trainsim::report
