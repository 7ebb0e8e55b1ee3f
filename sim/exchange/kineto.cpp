// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/kineto.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/diagnostics.hpp"
#include "sim/base/text.hpp"

namespace trainsim::exchange {

namespace {

using Json = nlohmann::json;

constexpr double kMicro = 1e-6;
constexpr double kPercent = 100;

/// A stretch of time in microseconds.
struct Stretch {
  double begin = 0;
  double end = 0;
};

struct Kernel {
  Stretch time;
  std::int64_t correlation = 0;
};

/// A call of the host that launched something.
struct Launch {
  double time = 0;
  std::int64_t thread = 0;
};

/// What a trace holds, as far as it matters here.
struct Trace {
  std::int64_t rank = 0;
  std::vector<Kernel> kernels;
  std::unordered_map<std::int64_t, Launch> launches;
  /// Operations of the autograd engine, by thread.
  std::unordered_map<std::int64_t, std::vector<Stretch>> backward;
  std::vector<Stretch> steps;
  std::size_t tensor_collectives = 0;
  std::size_t left_out = 0;
};

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

bool is_collective(const std::string& name) {
  return lower(name).starts_with("nccl") || lower(name).starts_with("rccl");
}

/// Whether a collective is of a tensor-parallel group: TENSOR_MODEL_PARALLEL_GROUP of Megatron-LM, mesh_tp of
/// device meshes.
bool is_tensor_parallel(const Json& arguments) {
  const std::string group = lower(text_of(arguments, "Process Group Description"));
  return group.find("tensor") != std::string::npos || group == "tp" || group.ends_with("_tp");
}

/// Sorts the events of a trace as they are parsed.
class Events {
 public:
  explicit Events(bool tensor_parallel) : tensor_parallel_(tensor_parallel) {}

  void take(const Json& event) {
    if (text_of(event, "ph") != "X") return;
    const std::string category = text_of(event, "cat");
    const double begin = number_of(event, "ts");
    const Stretch time = {begin, begin + number_of(event, "dur")};
    const auto thread = thread_of(event);
    const std::string name = text_of(event, "name");
    const auto arguments = event.find("args");
    static const Json none = Json::object();
    const Json& details = arguments != event.end() && arguments->is_object() ? *arguments : none;
    if (category == "kernel" || category == "gpu_memset") {
      take_kernel(name, time, details);
    } else if (category == "gpu_memcpy") {
      if (name.find("DtoD") != std::string::npos) take_kernel(name, time, details);
    } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "hip_runtime") {
      trace_.launches[static_cast<std::int64_t>(number_of(details, "correlation"))] = {begin, thread};
    } else if (name.starts_with("ProfilerStep#")) {
      if (category != "gpu_user_annotation") trace_.steps.push_back(time);
    } else if (name.starts_with("autograd::engine::evaluate_function")) {
      trace_.backward[thread].push_back(time);
    }
  }

  Trace& trace() { return trace_; }

 private:
  /// Threads are numbers on the host and may be words elsewhere.
  static std::int64_t thread_of(const Json& event) {
    return static_cast<std::int64_t>(number_of(event, "tid"));
  }

  void take_kernel(const std::string& name, const Stretch& time, const Json& details) {
    if (is_collective(name)) {
      if (!tensor_parallel_ || !is_tensor_parallel(details)) {
        ++trace_.left_out;
        return;
      }
      ++trace_.tensor_collectives;
    }
    trace_.kernels.push_back({time, static_cast<std::int64_t>(number_of(details, "correlation"))});
  }

  bool tensor_parallel_;
  Trace trace_;
};

/// Parses a trace without keeping its events, which may be millions.
Trace parse(const std::string& text, bool tensor_parallel) {
  Events events(tensor_parallel);
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
  Trace trace = std::move(events.trace());
  const auto job = root.find("distributedInfo");
  if (job != root.end() && job->is_object()) trace.rank = static_cast<std::int64_t>(number_of(*job, "rank"));
  return trace;
}

/// Stretches as few that do not touch, in order.
std::vector<Stretch> united(std::vector<Stretch> stretches) {
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  std::vector<Stretch> result;
  for (const Stretch& each : stretches) {
    if (result.empty() || each.begin > result.back().end) {
      result.push_back(each);
    } else {
      result.back().end = std::max(result.back().end, each.end);
    }
  }
  return result;
}

double length(const std::vector<Stretch>& stretches) {
  double sum = 0;
  for (const Stretch& each : united(stretches)) sum += each.end - each.begin;
  return sum;
}

/// Whether a moment lies in one of the stretches, which do not overlap and are in order.
bool contains(const std::vector<Stretch>& stretches, double time) {
  const auto after = std::upper_bound(stretches.begin(), stretches.end(), time,
                                      [](double moment, const Stretch& each) { return moment < each.begin; });
  return after != stretches.begin() && time <= std::prev(after)->end;
}

/// The kernels of one step by pass.
struct StepKernels {
  std::vector<Stretch> forward;
  std::vector<Stretch> backward;
  std::vector<Stretch> all;
};

/// Tells which step and pass a kernel belongs to.
class Sorter {
 public:
  explicit Sorter(Trace& trace) : trace_(trace) {
    std::vector<Stretch> all;
    for (auto& [thread, stretches] : trace_.backward) {
      stretches = united(std::move(stretches));
      all.insert(all.end(), stretches.begin(), stretches.end());
    }
    all = united(std::move(all));
    std::sort(trace_.steps.begin(), trace_.steps.end(),
              [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
    if (trace_.steps.empty()) {
      constexpr double ever = std::numeric_limits<double>::infinity();
      trace_.steps.push_back({-ever, ever});
    }
    last_backward_.assign(trace_.steps.size(), -std::numeric_limits<double>::infinity());
    for (const Stretch& each : all) {
      if (const std::size_t step = step_at(each.begin); step < last_backward_.size())
        last_backward_[step] = std::max(last_backward_[step], each.end);
    }
  }

  std::vector<StepKernels> sorted() {
    std::vector<StepKernels> steps(trace_.steps.size());
    for (const Kernel& kernel : trace_.kernels) {
      const auto launch = trace_.launches.find(kernel.correlation);
      if (launch == trace_.launches.end()) {
        ++unknown_;
        continue;
      }
      const std::size_t step = step_at(launch->second.time);
      if (step == steps.size()) continue;
      steps[step].all.push_back(kernel.time);
      const auto engine = trace_.backward.find(launch->second.thread);
      if (engine != trace_.backward.end() && contains(engine->second, launch->second.time)) {
        steps[step].backward.push_back(kernel.time);
      } else if (launch->second.time < last_backward_[step]) {
        steps[step].forward.push_back(kernel.time);
      }
    }
    return steps;
  }

  /// Kernels that nothing launched, as far as the trace says.
  std::size_t unknown() const { return unknown_; }

 private:
  /// The step at a time of the host; their number when it lies outside of all.
  std::size_t step_at(double time) const {
    const auto found = std::find_if(trace_.steps.begin(), trace_.steps.end(), [&](const Stretch& step) {
      return time >= step.begin && time <= step.end;
    });
    return static_cast<std::size_t>(found - trace_.steps.begin());
  }

  Trace& trace_;
  std::vector<double> last_backward_;
  std::size_t unknown_ = 0;
};

/// The part of a step's time on the GPU in which none of its kernels runs, in percent.
double idle_percent(const StepKernels& step) {
  const std::vector<Stretch> busy = united(step.all);
  const double whole = busy.back().end - busy.front().begin;
  return whole > 0 ? kPercent * (1 - length(busy) / whole) : 0;
}

void note_what_is_missing(const Trace& trace, std::size_t unknown, bool tensor_parallel, double idle,
                          Measurement& measured) {
  const auto percent = [](double share) { return std::to_string(std::lround(share)) + " %"; };
  if (trace.left_out > 0) {
    const char* verb = trace.left_out == 1 ? " collective in the trace is" : " collectives in the trace are";
    measured.notes.push_back(std::to_string(trace.left_out) + verb + " simulated instead");
  }
  if (tensor_parallel && trace.tensor_collectives == 0) {
    measured.notes.emplace_back(
        "tensor-parallel communication takes no time: no collective in the trace says that it is of a "
        "tensor-parallel group");
  }
  constexpr double worth_saying = 5;
  if (idle > worth_saying) {
    measured.notes.push_back("nothing is lost between kernels; in the trace the GPU was idle for " +
                             percent(idle) + " of a step, waiting for the host or for other GPUs");
  }
  if (unknown > 0) {
    const auto kernels = static_cast<double>(trace.kernels.size());
    measured.notes.push_back(percent(kPercent * static_cast<double>(unknown) / kernels) +
                             " of the kernels in the trace, whose launch is not in it, belong to no pass");
  }
  if (trace.steps.size() == 1 && trace.steps.front().end == std::numeric_limits<double>::infinity())
    measured.notes.emplace_back(
        "the trace is of one step, because it has no ProfilerStep; call profiler.step()");
}

}  // namespace

bool is_kineto_trace(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{' &&
         text.find("\"traceEvents\"") != std::string::npos;
}

Measurement read_kineto_trace(const std::string& text, bool tensor_parallel) {
  Trace trace = parse(text, tensor_parallel);
  if (trace.kernels.empty()) {
    throw InputError(
        "error: has no kernels of a GPU; record it with activities=[ProfilerActivity.CPU, "
        "ProfilerActivity.CUDA]");
  }
  if (trace.backward.empty()) {
    throw InputError(
        "error: has no operations of the autograd engine, so that nobody can tell the backward from the "
        "forward; record whole training steps with ProfilerActivity.CPU");
  }
  Sorter sorter(trace);
  std::vector<StepTimes> times;
  double idle = 0;
  for (const StepKernels& step : sorter.sorted()) {
    if (step.forward.empty() || step.backward.empty()) continue;
    times.push_back({length(step.forward) * kMicro, length(step.backward) * kMicro});
    idle += idle_percent(step);
  }
  if (times.empty()) {
    throw InputError(
        "error: has no step with kernels of both forward and backward; record at least one whole step");
  }
  Measurement measured;
  measured.times[trace.rank] = median(times);
  measured.what = "kernels";
  measured.samples = std::to_string(times.size()) + (times.size() == 1 ? " step" : " steps");
  note_what_is_missing(trace, sorter.unknown(), tensor_parallel, idle / static_cast<double>(times.size()),
                       measured);
  return measured;
}

}  // namespace trainsim::exchange
