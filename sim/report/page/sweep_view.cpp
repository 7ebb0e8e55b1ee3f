// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/sweep_view.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "sim/report/format.hpp"
#include "sim/report/page/front.hpp"
#include "sim/report/sweep_points.hpp"

namespace trainsim::report {

namespace {

using sweep::Row;
using sweep::RowAxis;

constexpr double kTokensOfTime = 1e6;
constexpr double kTokensOfCost = 1e9;
constexpr double kSecondsPerHour = 3600;
/// Numbers of tokens that differ by less are the same.
constexpr double kSameTokens = 1e-9;
/// Rates that differ by less are as good as each other.
constexpr double kSameRate = 5e-4;

double tokens_of(const Row& row) {
  return number_in(row, "tokens_per_s") * number_in(row, "step_time_s");
}

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// Makes the view of the rows, part by part.
class Viewer {
 public:
  explicit Viewer(const std::vector<Row>& rows) : rows_(rows) {
    view_.axes = sweep::axes_of(rows);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (fits(rows[r])) fitting_.push_back(r);
      if (is_valid(rows[r])) valid_.push_back(r);
    }
  }

  SweepView view() {
    find_best();
    view_.per_token = std::any_of(valid_.begin(), valid_.end(), [this](std::size_t r) {
      const double first = tokens_of(rows_[valid_.front()]);
      return std::abs(tokens_of(rows_[r]) - first) > kSameTokens * first;
    });
    view_.headline = headline();
    for (std::size_t a = 0; a < view_.axes.size() && view_.best; ++a) view_.curves.push_back(curve_of(a));
    const auto memory = [](const Row& row) { return number_in(row, "peak_memory_bytes"); };
    view_.memory = front_of(memory, "least memory",
                            [memory](const Row& row) { return gib(static_cast<Bytes>(memory(row))); });
    const bool gpus_vary = std::any_of(valid_.begin(), valid_.end(), [this](std::size_t r) {
      return number_in(rows_[r], "gpus") != number_in(rows_[valid_.front()], "gpus");
    });
    if (!gpus_vary) return std::move(view_);
    const auto cost = [this](const Row& row) { return gpu_hours_of(row, view_.per_token); };
    view_.cost = front_of(cost, "fewest GPU-hours",
                          [cost](const Row& row) { return number(cost(row)) + " GPU-hours"; });
    return std::move(view_);
  }

 private:
  void find_best() {
    const std::vector<std::size_t>& of = fitting_.empty() ? valid_ : fitting_;
    if (of.empty()) return;
    view_.best = *std::max_element(of.begin(), of.end(), [this](std::size_t a, std::size_t b) {
      return rate(rows_[a]) < rate(rows_[b]);
    });
  }

  std::string headline() const {
    if (rows_.empty()) return "There are no points.";
    if (!view_.best) return "None of the " + plural(rows_.size(), "point") + " is legal; the table says why.";
    const Row& best = rows_[*view_.best];
    const std::string numbers =
        duration(number_in(best, "step_time_s")) + " per step, MFU " + percent(number_in(best, "mfu")) +
        ", " + gib(static_cast<Bytes>(number_in(best, "peak_memory_bytes"))) + " on the fullest GPU";
    if (fitting_.empty()) {
      return "No point fits into memory. The fastest, if there were enough of it, would be " +
             point_text(best) + ": " + numbers + ".";
    }
    return "Of " + plural(fitting_.size(), "point") + " that " + (fitting_.size() == 1 ? "fits" : "fit") +
           ", " + point_text(best) + " trains most tokens per second and GPU: " + numbers + ".";
  }

  /// "plan.recompute=full".
  std::string value_text(const RowAxis& axis, std::size_t row) const {
    std::string text;
    for (const std::string& key : axis.keys) {
      const std::string value = text_in(rows_[row], key);
      if (!text.empty()) text += ", ";
      text += key;
      text += "=";
      text += value.empty() ? "as configured" : value;
    }
    return text;
  }

  SweepCurve curve_of(std::size_t axis) {
    SweepCurve curve;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      bool on_curve = true;
      for (std::size_t a = 0; a < view_.axes.size(); ++a) {
        const std::vector<std::size_t>& positions = view_.axes[a].positions;
        on_curve = on_curve && (a == axis || positions[r] == positions[*view_.best]);
      }
      if (on_curve) curve.rows.push_back(r);
    }
    const std::vector<std::size_t>& positions = view_.axes[axis].positions;
    std::stable_sort(curve.rows.begin(), curve.rows.end(),
                     [&positions](std::size_t a, std::size_t b) { return positions[a] < positions[b]; });
    add_sentences(curve, view_.axes[axis]);
    return curve;
  }

  void add_sentences(SweepCurve& curve, const RowAxis& axis) {
    curve.sentences.push_back(range_sentence(curve, axis));
    if (axis.keys.size() == 1 && is_batch_size(axis.keys.front())) {
      std::vector<const Row*> rows(curve.rows.size());
      std::transform(curve.rows.begin(), curve.rows.end(), rows.begin(),
                     [this](std::size_t r) { return &rows_[r]; });
      BatchCurve batch = batch_curve(axis.keys.front(), rows);
      if (batch.knee) curve.knee = curve.rows[*batch.knee];
      view_.notes.insert(view_.notes.end(), batch.sentences.begin(), batch.sentences.end());
      std::move(batch.sentences.begin(), batch.sentences.end(), std::back_inserter(curve.sentences));
      // What does not fit is in those.
      curve.sentences.push_back(values_sentence(0, illegal_values(curve)));
    } else {
      curve.sentences.push_back(values_sentence(misfitting_values(curve), illegal_values(curve)));
    }
    std::erase(curve.sentences, "");
  }

  /// From where to where the rate goes.
  std::string range_sentence(const SweepCurve& curve, const RowAxis& axis) const {
    std::vector<std::size_t> fitting;
    std::copy_if(curve.rows.begin(), curve.rows.end(), std::back_inserter(fitting),
                 [this](std::size_t r) { return fits(rows_[r]); });
    if (fitting.size() < 2) return "";
    // A curve goes through the best point, which is the first where several are as good.
    const std::size_t high = *view_.best;
    const std::size_t low =
        *std::min_element(fitting.begin(), fitting.end(),
                          [this](std::size_t a, std::size_t b) { return rate(rows_[a]) < rate(rows_[b]); });
    const double less = 1 - rate(rows_[low]) / rate(rows_[high]);
    if (less < kSameRate) {
      const std::string all = fitting.size() == 2 ? "Both values" : "All " + plural(fitting.size(), "value");
      return all + " that fit train as many tokens per second and GPU (" + number(rate(rows_[high])) +
             "), within " + percent(kSameRate) + ".";
    }
    return "Of what fits, " + value_text(axis, high) + " trains most tokens per second and GPU (" +
           number(rate(rows_[high])) + "), and " + value_text(axis, low) + " the fewest (" + percent(less) +
           " less).";
  }

  std::size_t illegal_values(const SweepCurve& curve) const {
    return static_cast<std::size_t>(std::count_if(curve.rows.begin(), curve.rows.end(),
                                                  [this](std::size_t r) { return !is_valid(rows_[r]); }));
  }

  std::size_t misfitting_values(const SweepCurve& curve) const {
    return static_cast<std::size_t>(
        std::count_if(curve.rows.begin(), curve.rows.end(),
                      [this](std::size_t r) { return is_valid(rows_[r]) && !fits(rows_[r]); }));
  }

  /// "2 values do not fit into memory, 1 value is not legal."; empty if there are none.
  static std::string values_sentence(std::size_t misfits, std::size_t illegal) {
    std::string text;
    if (misfits > 0)
      text =
          plural(misfits, "value") + (misfits == 1 ? " does not fit into memory" : " do not fit into memory");
    if (illegal > 0) {
      text += text.empty() ? "" : ", ";
      text += plural(illegal, "value");
      text += illegal == 1 ? " is not legal" : " are not legal";
    }
    return text.empty() ? "" : text + ".";
  }

  SweepFront front_of(const std::function<double(const Row&)>& other, const std::string& what,
                      const std::function<std::string(const Row&)>& write) const {
    std::vector<std::pair<double, double>> points;
    points.reserve(fitting_.size());
    for (const std::size_t r : fitting_)
      points.emplace_back(time_of(rows_[r], view_.per_token), other(rows_[r]));
    SweepFront front;
    front.rows = pareto_front(points);
    for (std::size_t& row : front.rows) row = fitting_[row];
    const auto numbers = [&](std::size_t point) {
      const Row& row = rows_[fitting_[point]];
      return point_text(row) + " (" + duration(time_of(row, view_.per_token)) + ", " + write(row) + ")";
    };
    front.sentence = points.empty()
                         ? "No point fits into memory, so there is no front."
                         : front_sentence(points, {"point that fits", "points that fit", what, numbers});
    return front;
  }

  const std::vector<Row>& rows_;
  std::vector<std::size_t> fitting_;
  std::vector<std::size_t> valid_;
  SweepView view_;
};

}  // namespace

double time_of(const Row& row, bool per_token) {
  return per_token ? kTokensOfTime / number_in(row, "tokens_per_s") : number_in(row, "step_time_s");
}

double gpu_hours_of(const Row& row, bool per_token) {
  const double seconds =
      per_token ? kTokensOfCost / number_in(row, "tokens_per_s") : number_in(row, "step_time_s");
  return number_in(row, "gpus") * seconds / kSecondsPerHour;
}

SweepView view_of(const std::vector<Row>& rows) {
  return Viewer(rows).view();
}

}  // namespace trainsim::report
