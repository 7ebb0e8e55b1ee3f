// SPDX-License-Identifier: Apache-2.0
#include "sim/search/frontier.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace trainsim::search {

double rounded(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return std::strtod(text.data(), nullptr);
}

void Frontier::set(std::size_t index, Stage stage, Value value) {
  if (index >= states_.size()) states_.resize(index + 1);
  State& state = states_[index];
  if (state.stage != Stage::kDropped && stage != Stage::kConfirmed) value = std::max(value, state.value);
  state = {stage, {rounded(value.first), rounded(value.second)}};
}

void Frontier::drop(std::size_t index) {
  if (index >= states_.size()) states_.resize(index + 1);
  states_[index].stage = Stage::kDropped;
}

Value Frontier::limit() const {
  std::vector<Value> confirmed;
  for (const State& state : states_) {
    if (state.stage == Stage::kConfirmed) confirmed.push_back(state.value);
  }
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (confirmed.size() < wanted_) return {infinite, infinite};
  const auto last = confirmed.begin() + static_cast<std::ptrdiff_t>(wanted_ - 1);
  std::nth_element(confirmed.begin(), last, confirmed.end());
  return *last;
}

bool Frontier::is_open(const State& state, const Value& limit) const {
  return state.stage != Stage::kConfirmed && state.stage != Stage::kDropped && state.value <= limit;
}

std::vector<std::size_t> Frontier::next(std::size_t most) const {
  const Value last = limit();
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (is_open(states_[i], last)) list.push_back(i);
  }
  std::stable_sort(list.begin(), list.end(),
                   [this](std::size_t a, std::size_t b) { return states_[a].value < states_[b].value; });
  if (list.size() > most) list.resize(most);
  return list;
}

std::size_t Frontier::count(Stage stage) const {
  return static_cast<std::size_t>(std::count_if(
      states_.begin(), states_.end(), [stage](const State& state) { return state.stage == stage; }));
}

std::size_t Frontier::open() const {
  const Value last = limit();
  return static_cast<std::size_t>(std::count_if(states_.begin(), states_.end(),
                                                [&](const State& state) { return is_open(state, last); }));
}

}  // namespace trainsim::search
