// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/rank.hpp"

#include <charconv>
#include <cstdint>

#include "sim/base/diagnostics.hpp"

namespace trainsim::sweep {

namespace {

constexpr std::int64_t kMostShards = 1'000'000;

[[noreturn]] void fail(const std::string& message) {
  throw InputError("trainsim: error: " + message);
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size())
    return std::nullopt;
  return number;
}

/// A variable's number, if it is set; a variable that is no number is an error.
std::optional<std::int64_t> variable(const Environment& environment, const std::string& name) {
  const std::optional<std::string> text = environment(name);
  if (!text || text->empty()) return std::nullopt;
  const std::optional<std::int64_t> number = whole_number(*text);
  if (!number || *number < 0 || *number > INT32_MAX) {
    fail("the environment variable " + name + " is '" + *text +
         "', which is no number; give --shard K/N (--shard 1/1 for all points)");
  }
  return number;
}

/// Position among processes, counted from 0.
struct Place {
  std::int64_t rank = 0;
  std::int64_t count = 1;
  std::string source;
};

/// The place of a task in its array.
std::optional<Place> array_task(const Environment& environment) {
  const auto id = variable(environment, "SLURM_ARRAY_TASK_ID");
  const auto count = variable(environment, "SLURM_ARRAY_TASK_COUNT");
  if (!id || !count) return std::nullopt;
  const std::int64_t least = variable(environment, "SLURM_ARRAY_TASK_MIN").value_or(0);
  const std::int64_t step = variable(environment, "SLURM_ARRAY_TASK_STEP").value_or(1);
  const std::int64_t most =
      variable(environment, "SLURM_ARRAY_TASK_MAX").value_or(least + (*count - 1) * step);
  const bool regular =
      step > 0 && *id >= least && (*id - least) % step == 0 && (most - least) / step + 1 == *count;
  if (!regular || (*id - least) / step >= *count) {
    fail("the Slurm array's " + std::to_string(*count) + " tasks are not numbered in equal steps from " +
         std::to_string(least) + " to " + std::to_string(most) + ", so that task " + std::to_string(*id) +
         " does not know which shard it is; give --shard K/N");
  }
  return Place{(*id - least) / step, *count, "Slurm array task " + std::to_string(*id)};
}

std::optional<Place> rank_of(const Environment& environment, const std::string& what, const std::string& rank,
                             const std::string& size) {
  const auto number = variable(environment, rank);
  const auto count = variable(environment, size);
  if (!number || !count) return std::nullopt;
  if (*number >= *count) {
    fail("the environment says rank " + std::to_string(*number) + " of " + std::to_string(*count) + " (" +
         rank + ", " + size + "), which can't be; give --shard K/N (--shard 1/1 for all points)");
  }
  return Place{*number, *count, what + " rank " + std::to_string(*number)};
}

/// The place among processes that were started together.
std::optional<Place> process_rank(const Environment& environment) {
  if (auto place = rank_of(environment, "MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) return place;
  if (auto place = rank_of(environment, "MPI", "PMI_RANK", "PMI_SIZE")) return place;
  const bool batch_script = environment("SLURM_JOB_ID") && !environment("SLURM_STEP_ID");
  if (batch_script) return std::nullopt;
  if (auto place = rank_of(environment, "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")) return place;
  return rank_of(environment, "Slurm", "SLURM_PROCID", "SLURM_NTASKS");
}

}  // namespace

std::optional<DetectedShard> detect_shard(const Environment& environment) {
  const std::optional<Place> task = array_task(environment);
  const std::optional<Place> rank = process_rank(environment);
  Place place = task.value_or(Place{});
  if (rank && rank->count > 1) {
    place.rank = place.rank * rank->count + rank->rank;
    place.source += (task ? ", " : "") + rank->source;
    place.count *= rank->count;
  }
  if (place.count <= 1) return std::nullopt;
  return DetectedShard{{static_cast<std::size_t>(place.rank) + 1, static_cast<std::size_t>(place.count)},
                       place.source};
}

DetectedShard parse_shard(const std::string& text, const Environment& environment) {
  const std::size_t slash = text.find('/');
  const std::string first = text.substr(0, slash);
  const auto count = slash == std::string::npos ? std::nullopt : whole_number(text.substr(slash + 1));
  if (count && *count >= 1 && *count <= kMostShards && first == "auto") {
    if (const auto sequence = variable(environment, "PARALLEL_SEQ")) {
      if (*sequence < 1 || *sequence > *count) {
        fail("--shard " + text + ": GNU parallel's job " + std::to_string(*sequence) + " is none of 1 to " +
             std::to_string(*count) + "; start one job per shard");
      }
      return {{static_cast<std::size_t>(*sequence), static_cast<std::size_t>(*count)},
              "GNU parallel's job " + std::to_string(*sequence)};
    }
    const std::optional<DetectedShard> detected = detect_shard(environment);
    if (detected && detected->shard.count == static_cast<std::size_t>(*count)) return *detected;
    fail("--shard " + text + ": the environment names no rank among " + std::to_string(*count) +
         " (PARALLEL_SEQ, SLURM_ARRAY_TASK_ID, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK); give "
         "--shard K/N");
  }
  const auto index = whole_number(first);
  if (!index || !count || *index < 1 || *index > *count || *count > kMostShards) {
    fail("--shard '" + text + "' is no shard; write K/N with K from 1 to N, as in --shard 2/8");
  }
  return {{static_cast<std::size_t>(*index), static_cast<std::size_t>(*count)}, "--shard"};
}

}  // namespace trainsim::sweep
