// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/kineto.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "sim/base/diagnostics.hpp"

namespace trainsim::exchange {

namespace {

constexpr double kMicro = 1e-6;
constexpr double kPercent = 100;

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
  std::vector<Stretch> optimizer;
  std::vector<Stretch> all;
};

/// Tells which step and pass a kernel belongs to.
class Sorter {
 public:
  explicit Sorter(KinetoTrace& trace) : trace_(trace) {
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
    for (const TracedKernel& kernel : trace_.kernels) {
      const auto launch =
          kernel.correlation ? trace_.launches.find(*kernel.correlation) : trace_.launches.end();
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
      } else if (!kernel.collective) {
        steps[step].optimizer.push_back(kernel.time);
      }
    }
    return steps;
  }

  /// Kernels that nothing launched, as far as the trace says.
  std::size_t unknown() const { return unknown_; }

 private:
  /// The step at a time of the host, the later where two meet; their number when it lies outside of all.
  std::size_t step_at(double time) const {
    const auto after =
        std::upper_bound(trace_.steps.begin(), trace_.steps.end(), time,
                         [](double moment, const Stretch& step) { return moment < step.begin; });
    const bool inside = after != trace_.steps.begin() && time <= std::prev(after)->end;
    return inside ? static_cast<std::size_t>(after - trace_.steps.begin()) - 1 : trace_.steps.size();
  }

  KinetoTrace& trace_;
  std::vector<double> last_backward_;
  std::size_t unknown_ = 0;
};

/// The part of a step's time on the GPU in which none of its kernels runs, in percent.
double idle_percent(const StepKernels& step) {
  const std::vector<Stretch> busy = united(step.all);
  const double whole = busy.back().end - busy.front().begin;
  return whole > 0 ? kPercent * (1 - length(busy) / whole) : 0;
}

std::string counted(std::size_t number, const char* one, const char* several) {
  return std::to_string(number) + (number == 1 ? one : several);
}

/// Communication that is part of passes in plan.profile must be in the trace.
void note_silent_groups(const KinetoTrace& trace, const InnerGroups& inner, Measurement& measured) {
  struct Kind {
    const char* name;
    bool silent;
  };
  const std::array<Kind, 3> kinds = {{{"tensor-parallel", inner.tensor && !trace.found.tensor},
                                      {"context-parallel", inner.context && !trace.found.context},
                                      {"expert-parallel", inner.expert && !trace.found.expert}}};
  for (const Kind& kind : kinds) {
    if (!kind.silent) continue;
    std::string note = kind.name;
    note += " communication takes no time: no collective in the trace says that its group is ";
    note += kind.name;
    measured.notes.push_back(std::move(note));
  }
}

void note_what_is_missing(const KinetoTrace& trace, std::size_t unknown, double idle, Measurement& measured) {
  const auto percent = [](double share) { return std::to_string(std::lround(share)) + " %"; };
  if (trace.left_out > 0) {
    measured.notes.push_back(
        counted(trace.left_out, " collective in the trace is", " collectives in the trace are") +
        " simulated instead");
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
  if (trace.unreadable > 0) {
    measured.notes.push_back(counted(trace.unreadable, " event of the trace is", " events of the trace are") +
                             " left out, because ts or dur is no number of microseconds");
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

Measurement read_kineto_trace(const std::string& text, const InnerGroups& inner) {
  KinetoTrace trace = parse_kineto_trace(text, inner);
  if (trace.kernels.empty() && trace.unreadable > 0)
    throw InputError("error: ts or dur of its events are no numbers of microseconds");
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
    times.push_back(
        {length(step.forward) * kMicro, length(step.backward) * kMicro, length(step.optimizer) * kMicro});
    idle += idle_percent(step);
  }
  if (times.empty()) {
    throw InputError(
        "error: has no step with kernels of both forward and backward; record at least one whole step");
  }
  Measurement measured;
  measured.ranks = trace.rank ? Measurement::Ranks::kNamed : Measurement::Ranks::kUnnamed;
  measured.times[trace.rank.value_or(0)] = median(times);
  measured.what = "kernels";
  measured.world_size = trace.world_size;
  measured.samples = counted(times.size(), " step", " steps");
  note_silent_groups(trace, inner, measured);
  note_what_is_missing(trace, sorter.unknown(), idle / static_cast<double>(times.size()), measured);
  return measured;
}

}  // namespace trainsim::exchange
