// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/page.hpp"

#include <string_view>

#include "sim/report/page/parts.hpp"
#include "sim/report/page/template.hpp"

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

std::string to_html(const Page& page) {
  constexpr std::string_view title_mark = "@TITLE@";
  constexpr std::string_view data_mark = "@DATA@";
  const std::size_t title = kPageTemplate.find(title_mark);
  const std::size_t data = kPageTemplate.find(data_mark);
  // A name that is not UTF-8 keeps what can be kept of it.
  const std::string name = Json(page.summary.name).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string html(kPageTemplate.substr(0, title));
  html += html_safe(Json::parse(name).get<std::string>());
  html += kPageTemplate.substr(title + title_mark.size(), data - title - title_mark.size());
  html += script_safe(page_json(page));
  html += kPageTemplate.substr(data + data_mark.size());
  return html;
}

}  // namespace trainsim::report
