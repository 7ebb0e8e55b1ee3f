// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/spelling.hpp"
#include "sim/search/space.hpp"

namespace trainsim::search {

namespace {

using plan::Recompute;
using plan::RecomputeGranularity;
using plan::ScheduleKind;
using plan::Sharding;

constexpr std::string_view kPlan = "plan.";
/// Largest number that a setting may have.
constexpr std::int64_t kMost = 1'000'000;

const std::vector<std::string> kSettings = {
    "tensor_parallel",   "pipeline_parallel", "virtual_pipeline", "micro_batch_size", "schedule",
    "sequence_parallel", "recompute",         "sharding",         "context_parallel", "expert_parallel"};

[[noreturn]] void fail(const std::string& text, const std::string& message) {
  throw InputError("--vary '" + text + "': error: " + message);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::size_t first = text.find_first_not_of(' ', begin);
    const std::size_t last = text.find_last_not_of(' ', end == 0 ? 0 : end - 1);
    parts.push_back(first < end ? text.substr(first, last - first + 1) : "");
    begin = end + 1;
  }
  return parts;
}

/// "…; use a, b or c (did you mean 'b'?)".
std::string choices(const std::string& word, const std::vector<std::string>& legal) {
  const std::string near = closest_match(word, legal);
  return "; use " + join_alternatives(legal) + (near.empty() ? "" : " (did you mean '" + near + "'?)");
}

std::optional<std::int64_t> count_of(const std::string& word) {
  std::int64_t number = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc() || rest != end || number < 1 || number > kMost) return std::nullopt;
  return number;
}

template <class E>
std::optional<E> word_of(const std::string& word, const std::vector<E>& values) {
  for (const E value : values) {
    if (plan::to_string(value) == word) return value;
  }
  return std::nullopt;
}

std::optional<bool> flag_of(const std::string& word) {
  if (word == "true") return true;
  return word == "false" ? std::optional(false) : std::nullopt;
}

std::optional<RecomputeChoice> recompute_of(const std::string& word) {
  if (word == "none") return RecomputeChoice{};
  if (word == "block") return RecomputeChoice{{}, true};
  if (word == "full") return RecomputeChoice{{RecomputeGranularity::kFull}, false};
  Recompute recompute{RecomputeGranularity::kSelective};
  if (word == "selective") return RecomputeChoice{recompute, false};
  recompute.modules.core_attention = false;
  for (const std::string& name : split(word, '+')) {
    if (name == "core_attn") {
      recompute.modules.core_attention = true;
    } else if (name == "layernorm") {
      recompute.modules.norm = true;
    } else if (name == "activation") {
      recompute.modules.activation = true;
    } else if (name == "mlp") {
      recompute.modules.mlp = true;
    } else if (name == "moe") {
      recompute.modules.experts = true;
    } else {
      return std::nullopt;
    }
  }
  return RecomputeChoice{recompute, false};
}

/// The values of a list, each read by `read`; `expected` says what they are.
template <class T, class Read>
std::vector<T> read_list(const std::string& text, const std::string& list, const Read& read,
                         const std::vector<std::string>& expected) {
  std::vector<T> values;
  for (const std::string& word : split(list, ',')) {
    const std::optional<T> value = read(word);
    if (!value) {
      const std::string what =
          word.empty() ? "a value is missing" : "'" + word + "' is not a value of this setting";
      fail(text, what + choices(word, expected));
    }
    values.push_back(*value);
  }
  return values;
}

std::vector<std::int64_t> read_counts(const std::string& text, const std::string& list) {
  return read_list<std::int64_t>(text, list, count_of, {"whole numbers from 1 to " + std::to_string(kMost)});
}

}  // namespace

void restrict_space(Space& space, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos)
    fail(assignment, "a setting and its values are needed, as in --vary micro_batch_size=1,2,4");
  const std::string key = assignment.substr(0, equals);
  const std::string setting = key.starts_with(kPlan) ? key.substr(kPlan.size()) : key;
  const std::string list = assignment.substr(equals + 1);
  if (setting == "tensor_parallel") {
    space.tensor_parallel = read_counts(assignment, list);
  } else if (setting == "pipeline_parallel") {
    space.pipeline_parallel = read_counts(assignment, list);
  } else if (setting == "virtual_pipeline") {
    space.virtual_pipeline = read_counts(assignment, list);
  } else if (setting == "micro_batch_size") {
    space.micro_batch_size = read_counts(assignment, list);
  } else if (setting == "schedule") {
    const auto read = [](const std::string& word) {
      return word_of<ScheduleKind>(word,
                                   {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved,
                                    ScheduleKind::kZeroBubbleH1, ScheduleKind::kZeroBubbleH2});
    };
    space.schedule =
        read_list<ScheduleKind>(assignment, list, read, {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2"});
  } else if (setting == "sequence_parallel") {
    space.sequence_parallel = read_list<bool>(assignment, list, flag_of, {"true", "false"});
  } else if (setting == "recompute") {
    space.recompute = read_list<RecomputeChoice>(
        assignment, list, recompute_of,
        {"none", "selective", "full", "block",
         "sums of core_attn, layernorm, activation, mlp and moe as in core_attn+mlp"});
  } else if (setting == "sharding") {
    const auto read = [](const std::string& word) {
      return word_of<Sharding>(word == "fsdp" ? "zero3" : word,
                               {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3});
    };
    space.sharding = read_list<Sharding>(assignment, list, read, {"none", "zero1", "zero2", "zero3"});
  } else if (setting == "context_parallel") {
    space.context_parallel = read_counts(assignment, list);
  } else if (setting == "expert_parallel") {
    space.expert_parallel = read_counts(assignment, list);
  } else if (setting == "data_parallel") {
    fail(assignment,
         "data_parallel is what tensor_parallel and pipeline_parallel leave of the GPUs; vary those");
  } else {
    fail(assignment, "'" + key + "' is not a setting that a search varies" + choices(setting, kSettings) +
                         "; other keys can be set for all plans with --set");
  }
}

}  // namespace trainsim::search
