// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/ledger.hpp"

#include <algorithm>
#include <tuple>

#include "sim/memory/live_set.hpp"

namespace trainsim::memory {

using program::Instruction;
using program::Opcode;
using program::Program;
using program::Stream;

namespace {

/// First pass: sums, the curve and where the peak is.
class Scan {
 public:
  explicit Scan(const Program& program) : live_(program) {
    profile_.curve.reserve(2 * program.slots.size() + 1);
    profile_.curve.emplace_back();
  }

  void step(std::size_t index, const Instruction& instruction) {
    // Who frees a tensor need not know what it counted as.
    live_.follow(
        instruction,
        [&] {
          return Held{instruction.memory, static_cast<Bytes>(instruction.amount)};
        },
        [&](const Held& held) { change(held.category, -held.bytes, index); });
    switch (instruction.op) {
      case Opcode::kAllocate:
        change(instruction.memory, static_cast<Bytes>(instruction.amount), index);
        break;
      case Opcode::kSlotBegin:
        open(static_cast<std::int32_t>(instruction.id));
        break;
      case Opcode::kSlotEnd:
        finish_share();
        open(-1);
        break;
      case Opcode::kCompute:
        compute_ += instruction.amount;
        break;
      default:
        break;
    }
  }

  Profile finish() {
    profile_.at_end = now_;
    return std::move(profile_);
  }
  std::size_t peak_index() const { return peak_index_; }

 private:
  struct Held {
    program::MemoryCategory category;
    Bytes bytes;
  };
  void change(program::MemoryCategory what, Bytes bytes, std::size_t index) {
    const auto category = static_cast<std::size_t>(what);
    now_[category] += bytes;
    total_ += bytes;
    profile_.largest[category] = std::max(profile_.largest[category], now_[category]);
    MemoryPoint& point = profile_.curve.back();
    point.end = total_;
    if (total_ > point.peak) {
      point.peak = total_;
      point_compute_ = compute_;
    }
    if (total_ <= profile_.peak) return;
    profile_.peak = total_;
    profile_.peak_slot = point.slot;
    profile_.peak_point = profile_.curve.size() - 1;
    profile_.at_peak = now_;
    peak_index_ = index;
  }
  void open(std::int32_t slot) {
    compute_ = point_compute_ = 0;
    // Nothing was allocated since the last point.
    MemoryPoint& last = profile_.curve.back();
    if (last.slot == -1 && last.begin == total_ && last.peak == total_ && profile_.curve.size() > 1) {
      last = {slot, total_, total_, total_};
      return;
    }
    profile_.curve.push_back({slot, total_, total_, total_});
  }
  void finish_share() {
    MemoryPoint& point = profile_.curve.back();
    point.peak_share = compute_ > 0 ? point_compute_ / compute_ : 0;
    if (profile_.peak_slot == point.slot) profile_.peak_share = point.peak_share;
  }

  LiveSet<Held> live_;
  Profile profile_;
  program::MemoryByCategory now_{};
  Bytes total_ = 0;
  std::size_t peak_index_ = 0;
  double compute_ = 0;
  /// When the current point's peak was reached.
  double point_compute_ = 0;
};

/// Second pass, up to the peak: what is alive there.
std::vector<LiveTensor> alive_at(const Program& program, std::size_t last) {
  LiveSet<std::size_t> live(program);
  std::vector<LiveTensor> tensors;
  const std::vector<Instruction>& code = program.stream(Stream::kCompute);
  for (std::size_t i = 0; i <= last && i < code.size(); ++i) {
    live.follow(
        code[i], [i] { return i; }, [](std::size_t) {});
  }
  live.for_each([&](std::int32_t micro_batch, std::size_t at) {
    const Instruction& instruction = code[at];
    tensors.push_back({program.tensors[instruction.id], instruction.memory, micro_batch,
                       static_cast<Bytes>(instruction.amount)});
  });
  std::stable_sort(tensors.begin(), tensors.end(), [](const LiveTensor& a, const LiveTensor& b) {
    return std::tie(b.bytes, a.name, a.micro_batch) < std::tie(a.bytes, b.name, b.micro_batch);
  });
  return tensors;
}

}  // namespace

Profile replay(const Program& program) {
  Scan scan(program);
  const std::vector<Instruction>& code = program.stream(Stream::kCompute);
  for (std::size_t i = 0; i < code.size(); ++i) scan.step(i, code[i]);
  Profile profile = scan.finish();
  profile.alive_at_peak = alive_at(program, scan.peak_index());
  return profile;
}

}  // namespace trainsim::memory
