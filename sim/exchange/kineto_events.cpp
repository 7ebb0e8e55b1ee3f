// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/kineto_events.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/base/diagnostics.hpp"
#include "sim/base/text.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::exchange {

namespace {

using Json = nlohmann::json;

std::string_view text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

/// A number, which some writers put into quotes; nothing where there is none.
std::optional<double> number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number()) return found->get<double>();
  const std::string_view text = text_of(object, key);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = !text.empty() && error == std::errc{} && end == text.data() + text.size();
  return whole && std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
}

/// A whole number; nothing where there is none, or one that 64 bits cannot hold.
std::optional<std::int64_t> whole_number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number_unsigned()) {
    const auto number = found->get<std::uint64_t>();
    const bool fits = number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return fits ? std::optional<std::int64_t>(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (found != object.end() && found->is_number_integer()) return found->get<std::int64_t>();
  const std::optional<double> number = number_of(object, key);
  // Beyond it doubles skip whole numbers.
  constexpr double most = 9007199254740992.0;
  if (!number || std::abs(*number) > most || std::trunc(*number) != *number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

/// The time of an event; nothing where it has none.
std::optional<Stretch> time_of(const Json& event) {
  const std::optional<double> begin = number_of(event, "ts");
  const std::optional<double> duration = number_of(event, "dur");
  if (!begin || !duration || *duration < 0) return std::nullopt;
  return Stretch{*begin, *begin + *duration};
}

bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// Kinds of a group by its description: TENSOR_MODEL_PARALLEL_GROUP, TENSOR_AND_CONTEXT_PARALLEL_GROUP or
/// EXPERT_MODEL_PARALLEL_GROUP of Megatron-LM (megatron/core/parallel_state.py), mesh_tp, mesh_cp or mesh_ep
/// of PyTorch's device meshes. Names such as mesh_dp_shard_cp, DATA_PARALLEL_GROUP_WITH_CP and
/// EXPERT_DATA_PARALLEL_GROUP are of groups that exchange gradients.
InnerGroups kinds_of_group(const Json& arguments) {
  const std::string group = lower(text_of(arguments, "Process Group Description"));
  InnerGroups kinds;
  kinds.tensor = has(group, "tensor") || group == "tp" || group.ends_with("_tp");
  kinds.context = has(group, "context") || group == "cp" || group == "mesh_cp";
  kinds.expert = (has(group, "expert") && !has(group, "data")) || group == "ep" || group == "mesh_ep";
  return kinds;
}

bool is_collective(std::string_view name) {
  const std::string small = lower(name.substr(0, 4));
  return small == "nccl" || small == "rccl";
}

/// Sorts the events of a trace as they are parsed.
class Events {
 public:
  explicit Events(const InnerGroups& inner) : inner_(inner) {}

  void take(const Json& event) {
    if (text_of(event, "ph") != "X") return;
    const std::string_view category = text_of(event, "cat");
    const std::string_view name = text_of(event, "name");
    const auto arguments = event.find("args");
    static const Json none = Json::object();
    const Json& details = arguments != event.end() && arguments->is_object() ? *arguments : none;
    if (category == "kernel" || category == "gpu_memset") {
      take_kernel(name, event, details);
    } else if (category == "gpu_memcpy") {
      if (has(name, "DtoD")) take_kernel(name, event, details);
    } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "hip_runtime") {
      take_launch(event, details);
    } else if (name.starts_with("ProfilerStep#")) {
      if (category != "gpu_user_annotation") take_time(event, trace_.steps);
    } else if (name.starts_with("autograd::engine::evaluate_function")) {
      take_time(event, trace_.backward[thread_of(event)]);
    }
  }

  KinetoTrace& trace() { return trace_; }

 private:
  /// Threads are numbers or words, and are only told apart.
  std::size_t thread_of(const Json& event) {
    const auto found = event.find("tid");
    return threads_.emplace(found == event.end() ? "" : found->dump(), threads_.size()).first->second;
  }

  void take_time(const Json& event, std::vector<Stretch>& stretches) {
    if (const auto time = time_of(event)) {
      stretches.push_back(*time);
    } else {
      ++trace_.unreadable;
    }
  }

  /// Without a correlation nothing could be found by it.
  void take_launch(const Json& event, const Json& details) {
    const auto correlation = whole_number_of(details, "correlation");
    if (!correlation) return;
    if (const auto begin = number_of(event, "ts")) {
      trace_.launches[*correlation] = {*begin, thread_of(event)};
    } else {
      ++trace_.unreadable;
    }
  }

  void take_kernel(std::string_view name, const Json& event, const Json& details) {
    if (is_collective(name) && !take_group(kinds_of_group(details))) {
      ++trace_.left_out;
      return;
    }
    // The kernels of DeepEP exchange tokens without NCCL, and name no group.
    const bool exchange = has(name, "deep_ep::");
    if (exchange) trace_.found.expert = true;
    if (const auto time = time_of(event)) {
      trace_.kernels.push_back(
          {*time, whole_number_of(details, "correlation"), exchange || is_collective(name)});
    } else {
      ++trace_.unreadable;
    }
  }

  /// Whether a group communicates inside of passes.
  bool take_group(const InnerGroups& kinds) {
    const bool tensor = kinds.tensor && inner_.tensor;
    const bool context = kinds.context && inner_.context;
    const bool expert = kinds.expert && inner_.expert;
    trace_.found.tensor |= tensor;
    trace_.found.context |= context;
    trace_.found.expert |= expert;
    return tensor || context || expert;
  }

  InnerGroups inner_;
  std::unordered_map<std::string, std::size_t> threads_;
  KinetoTrace trace_;
};

std::optional<std::int64_t> rank_of(const Json& root) {
  const auto job = root.find("distributedInfo");
  if (job == root.end() || !job->is_object() || !job->contains("rank")) return std::nullopt;
  const std::optional<std::int64_t> rank = whole_number_of(*job, "rank");
  if (!rank || *rank < 0)
    throw InputError("error: distributedInfo.rank is " + config::clip((*job)["rank"].dump()) +
                     ", and no rank");
  return rank;
}

std::optional<std::int64_t> world_size_of(const Json& root) {
  const auto job = root.find("distributedInfo");
  if (job == root.end() || !job->is_object() || !job->contains("world_size")) return std::nullopt;
  return whole_number_of(*job, "world_size");
}

}  // namespace

KinetoTrace parse_kineto_trace(const std::string& text, const InnerGroups& inner) {
  Events events(inner);
  bool inside = false;
  const auto filter = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) inside = parsed == "traceEvents";
    if (depth != 2 || event != Json::parse_event_t::object_end || !inside) return true;
    events.take(parsed);
    return false;
  };
  Json root;
  try {
    root = Json::parse(text, filter);
  } catch (const Json::exception& error) {
    throw InputError("error: is no complete trace: " + std::string(error.what()));
  }
  KinetoTrace trace = std::move(events.trace());
  trace.rank = rank_of(root);
  trace.world_size = world_size_of(root);
  return trace;
}

}  // namespace trainsim::exchange
