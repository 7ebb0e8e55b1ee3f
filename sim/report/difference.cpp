// SPDX-License-Identifier: Apache-2.0
#include "sim/report/difference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/report/format.hpp"
#include "sim/report/json_dump.hpp"

namespace trainsim::report {

namespace {

/// Changes below this share of the whole are rounding, and not named.
constexpr double kNothing = 5e-5;
/// Parts that a sentence names at most; the others together are "the rest".
constexpr std::size_t kNamedParts = 4;
/// Shares of the largest part below which a part is not named, and the rest is not.
constexpr double kSmallPart = 0.05;
constexpr double kSmallRest = 0.005;

/// A part of a change, and its name.
struct Part {
  std::string name;
  double change = 0;
};

double size_of(const Part& part) {
  return std::abs(part.change);
}

/// Parts worth naming, the largest first, and what is left of the change without them. Parts below `least`
/// are rounding.
std::vector<Part> named_parts(std::vector<Part> parts, double least) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return size_of(a) > size_of(b); });
  const double largest = size_of(parts.front());
  std::size_t named = 0;
  while (named < kNamedParts && size_of(parts[named]) > std::max(least, kSmallPart * largest)) ++named;
  const double rest = std::accumulate(parts.begin() + static_cast<std::ptrdiff_t>(named), parts.end(), 0.0,
                                      [](double sum, const Part& part) { return sum + part.change; });
  parts.resize(named);
  if (!parts.empty() && std::abs(rest) > std::max(least, kSmallRest * largest))
    parts.push_back({"the rest", rest});
  return parts;
}

/// ": bubble -0.90 s, recompute +0.20 s", or nothing without parts.
template <class Write>
std::string parts_text(const std::vector<Part>& parts, const Write& write) {
  std::string text;
  for (const Part& part : parts) {
    text += text.empty() ? ": " : ", ";
    text += part.name;
    text += " ";
    text += write(part.change);
  }
  return text;
}

std::vector<Part> time_parts(const Difference& difference) {
  std::vector<Part> parts;
  parts.reserve(difference.by_cause.size());
  for (std::size_t c = 0; c < difference.by_cause.size(); ++c)
    parts.push_back({words(program::to_string(static_cast<program::Cause>(c))), difference.by_cause[c]});
  return named_parts(std::move(parts), kNothing * difference.base);
}

std::vector<Part> memory_parts(const Difference& difference) {
  std::vector<Part> parts;
  parts.reserve(difference.by_category.size());
  for (std::size_t c = 0; c < difference.by_category.size(); ++c) {
    parts.push_back({words(program::to_string(static_cast<program::MemoryCategory>(c))),
                     static_cast<double>(difference.by_category[c])});
  }
  return named_parts(std::move(parts), kNothing * static_cast<double>(difference.from.peak_memory));
}

/// " A: fits; B: does not fit."; nothing when the verdict is the same.
std::string verdict_text(const Difference& difference) {
  const Figures& from = difference.from;
  const Figures& to = difference.to;
  if (from.verdict == to.verdict) return "";
  return " " + from.name + ": " + to_string(from.verdict) + "; " + to.name + ": " + to_string(to.verdict) +
         ".";
}

std::string gpus_sentence(const Difference& difference) {
  const Figures& from = difference.from;
  const Figures& to = difference.to;
  const double factor = static_cast<double>(to.gpus) / static_cast<double>(from.gpus);
  const double spent = factor * (1.0 + difference.share()) - 1.0;
  return to.name + " uses " + std::to_string(to.gpus) + " GPUs, " + from.name + " " +
         std::to_string(from.gpus) + ": its GPU time is " +
         (std::abs(spent) < kNothing ? "the same"
                                     : percent(std::abs(spent)) + (spent < 0 ? " less" : " more")) +
         " per " + (difference.per_token ? "token" : "step") + ".";
}

}  // namespace

Figures figures_of(const Summary& summary, std::string name) {
  return {std::move(name),
          summary.model.name,
          summary.plan.gpus,
          static_cast<double>(summary.plan.global_batch_size * summary.model.sequence_length),
          summary.step_time,
          summary.breakdown,
          summary.tokens_per_second,
          summary.mfu,
          summary.hfu,
          summary.bubble_ratio,
          summary.scaling_efficiency,
          summary.verdict,
          summary.peak_memory,
          fullest_rank(summary).memory_at_peak};
}

Figures figures_of(const std::string& text, std::string name) {
  const Json json = Json::parse(text);
  Figures figures;
  figures.name = std::move(name);
  figures.model = json["model"].get<std::string>();
  const Json& plan = json["plan"];
  figures.gpus = plan["gpus"].get<std::int64_t>();
  figures.tokens = plan["global_batch_size"].get<double>() * plan["sequence_length"].get<double>();
  figures.step_time = json["step_time_s"].get<double>();
  for (std::size_t c = 0; c < figures.breakdown.size(); ++c)
    // Some causes are only there in plans that can have them.
    figures.breakdown[c] = json["breakdown"].value(program::to_string(static_cast<program::Cause>(c)), 0.0);
  figures.tokens_per_second = json["tokens_per_s"].get<double>();
  figures.mfu = json["mfu"].get<double>();
  figures.hfu = json["hfu"].get<double>();
  figures.bubble_ratio = json["bubble_ratio"].get<double>();
  figures.scaling_efficiency = json["scaling_efficiency"].get<double>();
  for (const Verdict verdict : {Verdict::kFits, Verdict::kBorderline, Verdict::kDoesNotFit}) {
    if (json["verdict"] == to_string(verdict)) figures.verdict = verdict;
  }
  figures.peak_memory = json["peak_memory_bytes"].get<Bytes>();
  const auto fullest = std::find_if(json["ranks"].begin(), json["ranks"].end(), [&json](const Json& rank) {
    return rank["peak_memory_bytes"] == json["peak_memory_bytes"];
  });
  for (std::size_t c = 0; c < figures.memory_at_peak.size(); ++c) {
    const char* category = program::to_string(static_cast<program::MemoryCategory>(c));
    figures.memory_at_peak[c] = (*fullest)["memory_at_peak"][category].get<Bytes>();
  }
  return figures;
}

Difference difference(const Figures& from, const Figures& to) {
  Difference result{from, to};
  result.per_token = from.tokens != to.tokens;
  const double before = result.per_token ? from.tokens : 1.0;
  const double after = result.per_token ? to.tokens : 1.0;
  result.base = from.step_time / before;
  result.time = to.step_time / after - result.base;
  for (std::size_t c = 0; c < result.by_cause.size(); ++c)
    result.by_cause[c] = to.breakdown[c] / after - from.breakdown[c] / before;
  result.memory = to.peak_memory - from.peak_memory;
  for (std::size_t c = 0; c < result.by_category.size(); ++c)
    result.by_category[c] = to.memory_at_peak[c] - from.memory_at_peak[c];
  return result;
}

Seconds change_scale(const Difference& difference) {
  Seconds largest = 0;
  for (const Seconds change : difference.by_cause) largest = std::max(largest, std::abs(change));
  return largest > kNothing * difference.base ? std::min(difference.base, 10.0 * largest) : difference.base;
}

std::string time_sentence(const Difference& difference) {
  const std::string unit = difference.per_token ? " per token" : " per step";
  const Seconds after = difference.base + difference.time;
  std::string text = difference.to.name;
  if (std::abs(difference.share()) < kNothing) {
    text += " takes as long" + unit + " as " + difference.from.name + " (" + duration(after) + ")";
  } else {
    text += " takes " + percent(std::abs(difference.share())) + (difference.time < 0 ? " less" : " more") +
            " time" + unit + " than " + difference.from.name + " (" + duration(after) + ", not " +
            duration(difference.base) + ")";
  }
  const std::vector<Part> parts = time_parts(difference);
  const Seconds scale = change_scale(difference);
  return text + parts_text(parts, [scale](double seconds) { return signed_duration(seconds, scale); }) + ".";
}

std::string memory_sentence(const Difference& difference) {
  const Figures& from = difference.from;
  const Figures& to = difference.to;
  std::string text = "The fullest rank of " + to.name;
  if (std::abs(static_cast<double>(difference.memory)) < kNothing * static_cast<double>(from.peak_memory)) {
    text += " needs as much memory as that of " + from.name + " (" + gib(to.peak_memory) + ")";
  } else {
    text += " needs " + gib(std::abs(difference.memory)) + (difference.memory < 0 ? " less" : " more") +
            " than that of " + from.name + " (" + gib(to.peak_memory) + ", not " + gib(from.peak_memory) +
            ")";
  }
  const auto write = [](double bytes) { return signed_gib(std::llround(bytes)); };
  return text + parts_text(memory_parts(difference), write) + "." + verdict_text(difference);
}

std::vector<std::string> sentences(const Difference& difference) {
  const Figures& from = difference.from;
  const Figures& to = difference.to;
  std::vector<std::string> result;
  if (from.model != to.model) {
    result.push_back(from.name + " trains " + from.model + " and " + to.name + " " + to.model +
                     ": times are not of the same work.");
  }
  if (difference.per_token) {
    result.push_back("A step of " + from.name + " has " + fixed(from.tokens, 0) + " tokens and one of " +
                     to.name + " " + fixed(to.tokens, 0) + ": times are compared per token.");
  }
  result.push_back(time_sentence(difference));
  if (from.gpus != to.gpus) result.push_back(gpus_sentence(difference));
  result.push_back(memory_sentence(difference));
  return result;
}

}  // namespace trainsim::report
