// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace trainsim::search {

/// What is known of a candidate.
enum class Stage {
  /// A lower bound that it shares with candidates that differ in what they recompute.
  kGuessed,
  /// A lower bound of its value.
  kBounded,
  /// Its value without contention between transfers, which is a closer lower bound.
  kRanked,
  /// Its value.
  kConfirmed,
  /// It can't be chosen: it does not fit, or breaks a limit.
  kDropped,
};

/// What a search makes small: first the first, then the second.
using Value = std::pair<double, double>;

/// Which candidates are worth more work: a best-first search. All values but the confirmed are lower bounds,
/// so that whatever has one above the `wanted`-th best confirmed value can't be among the `wanted` best.
class Frontier {
 public:
  /// `wanted` candidates are to be found, >= 1.
  explicit Frontier(std::size_t wanted) : wanted_(wanted) {}

  /// Sets what is known of candidate `index`, which may be new. A value is never lowered.
  void set(std::size_t index, Stage stage, Value value);
  /// Takes a candidate out.
  void drop(std::size_t index);
  /// What is known of a candidate.
  Stage stage(std::size_t index) const { return states_[index].stage; }
  Value value(std::size_t index) const { return states_[index].value; }

  /// Up to `most` candidates that have to be looked at more closely, those with the smallest values first;
  /// none when the `wanted` best are known. Values that agree to nine digits count as equal.
  std::vector<std::size_t> next(std::size_t most) const;
  /// Candidates of a stage.
  std::size_t count(Stage stage) const;
  /// Candidates that could still be among the best and are not confirmed.
  std::size_t open() const;

 private:
  struct State {
    Stage stage = Stage::kDropped;
    Value value;
  };
  /// The largest value that can still be among the best.
  Value limit() const;
  bool is_open(const State& state, const Value& limit) const;

  std::size_t wanted_;
  std::vector<State> states_;
};

/// A number rounded to nine significant digits: differences below that come from the order of additions.
double rounded(double value);

}  // namespace trainsim::search
