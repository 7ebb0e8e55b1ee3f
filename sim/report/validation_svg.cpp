// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/report/format.hpp"
#include "sim/report/validation.hpp"

namespace trainsim::report {

namespace {

using validation::Comparison;
using validation::Evaluation;

constexpr double kSize = 640;
constexpr double kLeft = 80;
constexpr double kTop = 40;
/// Room to the right for the legend.
constexpr double kLegend = 230;

/// Colours that people with any colour vision tell apart (Okabe and Ito 2008).
constexpr std::array<const char*, 8> kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                 "#56b4e9", "#d55e00", "#8c8c00", "#000000"};
constexpr std::array<const char*, 3> kShapes = {"circle", "square", "diamond"};

std::string coordinate(double value) {
  return number(value, 5);
}

/// Escapes what XML reserves.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

/// The plot's range, in powers of ten, and where times lie in it.
class Axis {
 public:
  explicit Axis(const std::vector<const Comparison*>& rows) {
    double least = 1e300;
    double most = 0;
    for (const Comparison* row : rows) {
      least = std::min({least, row->values.measured, row->values.simulated});
      most = std::max({most, row->values.measured, row->values.simulated});
    }
    first_ = static_cast<int>(std::floor(std::log10(least)));
    last_ = std::max(first_ + 1, static_cast<int>(std::ceil(std::log10(most))));
  }
  int first() const { return first_; }
  int last() const { return last_; }
  double x(double seconds) const { return kLeft + kSize * share(seconds); }
  double y(double seconds) const { return kTop + kSize * (1.0 - share(seconds)); }

 private:
  double share(double seconds) const { return (std::log10(seconds) - first_) / (last_ - first_); }
  int first_ = 0;
  int last_ = 1;
};

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<line x1=\"" + coordinate(x1) + "\" y1=\"" + coordinate(y1) + "\" x2=\"" + coordinate(x2) +
         "\" y2=\"" + coordinate(y2) + "\" " + style + "/>\n";
}

std::string label(double x, double y, const std::string& anchor, const std::string& text,
                  const std::string& more = "") {
  return "<text x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" text-anchor=\"" + anchor + "\" " +
         more + ">" + escaped(text) + "</text>\n";
}

std::string grid(const Axis& axis) {
  std::string text;
  for (int power = axis.first(); power <= axis.last(); ++power) {
    const double value = std::pow(10.0, power);
    text += line(axis.x(value), kTop, axis.x(value), kTop + kSize, "stroke=\"#ddd\"");
    text += line(kLeft, axis.y(value), kLeft + kSize, axis.y(value), "stroke=\"#ddd\"");
    const std::string name = value >= 1 ? number(value, 1) + " s" : number(value * 1e3, 1) + " ms";
    text += label(axis.x(value), kTop + kSize + 20, "middle", name);
    text += label(kLeft - 8, axis.y(value) + 4, "end", name);
  }
  return text;
}

/// The identity line, and lines 10 % above and below it.
std::string guides(const Axis& axis) {
  const double low = std::pow(10.0, axis.first());
  const double high = std::pow(10.0, axis.last());
  std::string text = line(axis.x(low), axis.y(low), axis.x(high), axis.y(high), "stroke=\"#444\"");
  const std::string faint = "stroke=\"#999\" stroke-dasharray=\"4 4\"";
  text += line(axis.x(low), axis.y(low * 1.1), axis.x(high / 1.1), axis.y(high), faint);
  text += line(axis.x(low * 1.1), axis.y(low), axis.x(high), axis.y(high / 1.1), faint);
  return text;
}

/// Colours repeat after eight families, shapes then differ.
std::string mark(double x, double y, std::size_t style, const std::string& title) {
  const std::string fill =
      std::string("fill=\"") + kColours[style % kColours.size()] + "\" fill-opacity=\"0.7\"";
  const std::string shape = kShapes[style / kColours.size() % kShapes.size()];
  const std::string hover = title.empty() ? "" : "<title>" + escaped(title) + "</title>";
  if (shape == "circle") {
    return "<circle cx=\"" + coordinate(x) + "\" cy=\"" + coordinate(y) + "\" r=\"4\" " + fill + ">" + hover +
           "</circle>\n";
  }
  const std::string turn =
      shape == "diamond" ? " transform=\"rotate(45 " + coordinate(x) + " " + coordinate(y) + ")\"" : "";
  return "<rect x=\"" + coordinate(x - 3.5) + "\" y=\"" + coordinate(y - 3.5) +
         "\" width=\"7\" height=\"7\" " + fill + turn + ">" + hover + "</rect>\n";
}

}  // namespace

std::string to_svg(const Evaluation& evaluation) {
  std::vector<const Comparison*> rows;
  for (const Comparison& row : evaluation.comparisons) {
    if (row.quantity == "step") rows.push_back(&row);
  }
  const double width = kLeft + kSize + kLegend;
  const double height = kTop + kSize + 60;
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + coordinate(width) + " " +
                     coordinate(height) +
                     "\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"Measured and "
                     "simulated step times\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  text += label(kLeft + kSize / 2, 22, "middle", "Step time: simulated against measured", "font-size=\"16\"");
  if (rows.empty()) return text + label(kLeft, kTop + 40, "start", "no step time was compared") + "</svg>\n";
  const Axis axis(rows);
  text += grid(axis) + guides(axis);
  std::map<std::string, std::size_t> styles;
  for (const Comparison* row : rows) {
    const std::size_t style = styles.try_emplace(row->family, styles.size()).first->second;
    const std::string title = row->id + ": measured " + duration(row->values.measured) + ", simulated " +
                              duration(row->values.simulated) + ", error " + percent(row->values.error());
    text += mark(axis.x(row->values.measured), axis.y(row->values.simulated), style, title);
  }
  for (const auto& [family, style] : styles) {
    const double y = kTop + 16 + 22 * static_cast<double>(style);
    text += mark(kLeft + kSize + 20, y, style, "") + label(kLeft + kSize + 34, y + 4, "start", family);
  }
  text += label(kLeft + kSize / 2, kTop + kSize + 46, "middle", "measured");
  text += label(20, kTop + kSize / 2, "middle", "simulated",
                "transform=\"rotate(-90 20 " + coordinate(kTop + kSize / 2) + ")\"");
  text += label(kLeft + kSize + 20, kTop + kSize, "start", "dashed: 10 % off");
  return text + "</svg>\n";
}

}  // namespace trainsim::report
