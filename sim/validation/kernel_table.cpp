// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/kernel_table.hpp"

#include "sim/base/spelling.hpp"

namespace trainsim::validation {

namespace {

/// Above that a share of a peak is more likely a percentage than a GPU that beats its data sheet.
constexpr double kMostShareOfPeak = 1.5;

/// Whether a column holds the second of two words; reports any other word.
bool second_of(const CsvRow& row, std::string_view column, std::string_view first, std::string_view second,
               config::Report& report) {
  const std::string word = row.text(column);
  if (word != first && word != second) {
    report.add(row.at(), std::string(column),
               "needs " + std::string(first) + " or " + std::string(second) + ", not '" + word + "'");
  }
  return word == second;
}

/// Bytes of an element of the output; bf16 without such a column.
int output_bytes(const CsvRow& row, config::Report& report) {
  const std::string word = row.text("out_dtype");
  if (word == "fp32") return 4;
  if (!word.empty() && word != "bf16" && word != "fp16") {
    report.add(row.at(), "out_dtype", "needs bf16, fp16 or fp32, not '" + word + "'");
  }
  return 2;
}

/// Seconds from the share of a peak that a kernel reached.
Seconds time_of(const CsvRow& row, Flops flops, config::Report& report) {
  const double share = row.number("fraction_of_peak", report);
  if (share > kMostShareOfPeak) {
    report.add(row.at(), "fraction_of_peak", "needs a share such as 0.62, not a percentage");
  }
  const double peak = row.number("peak_tflops", report) * kTera;
  return share > 0 && peak > 0 ? flops / (share * peak) : 0;
}

MeasuredMatmul read_matmul(const CsvRow& row, config::Report& report) {
  MeasuredMatmul result;
  result.gpu = row.text("gpu");
  result.shape = {row.count("batch", report), row.count("m", report), row.count("n", report),
                  row.count("k", report)};
  result.output = {output_bytes(row, report),
                   !row.text("accumulate").empty() && second_of(row, "accumulate", "False", "True", report)};
  result.grouped = !row.text("grouped").empty() && second_of(row, "grouped", "False", "True", report);
  const cost::MatmulShape& shape = result.shape;
  result.seconds = time_of(row,
                           2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                               static_cast<double>(shape.n) * static_cast<double>(shape.k),
                           report);
  return result;
}

MeasuredAttention read_attention(const CsvRow& row, config::Report& report) {
  MeasuredAttention result;
  result.gpu = row.text("gpu");
  result.shape = {row.count("batch", report),       row.count("seq", report),
                  row.count("heads", report),       row.count("kv_heads", report),
                  row.count("qk_head_dim", report), row.count("v_head_dim", report)};
  result.backward = second_of(row, "pass", "fwd", "bwd", report);
  // Such tables count the five multiplies that backward executes, and no mask.
  const double executed = result.backward ? 5.0 / 4.0 : 1.0;
  result.seconds = time_of(row, executed * cost::attention_flops(result.shape, result.backward), report);
  return result;
}

/// The operation of a collective; an all-reduce without such a column.
program::CollectiveOp read_operation(const CsvRow& row, config::Report& report) {
  const std::string word = row.text("op");
  if (word.empty()) return program::CollectiveOp::kAllReduce;
  std::vector<std::string> known;
  for (const auto op : program::kCollectiveOps) {
    known.emplace_back(program::to_string(op));
    if (word == known.back()) return op;
  }
  report.add(row.at(), "op", "must be " + join_alternatives(known) + ", not '" + word + "'");
  return program::CollectiveOp::kAllReduce;
}

MeasuredCollective read_collective(const CsvRow& row, config::Report& report) {
  return {row.text("cluster"), row.count("gpus", report), row.number("size_bytes", report),
          row.number("time_us", report) / kMega, read_operation(row, report)};
}

MeasuredStream read_stream(const CsvRow& row, config::Report& report) {
  return {row.text("gpu"), row.number("bytes", report), row.number("time_us", report) / kMega};
}

/// Reads each line with `read` and keeps those without problems.
template <class T, class Read>
void read_lines(const CsvTable& table, Read read, std::vector<T>& into, config::Report& report) {
  for (const CsvRow& row : table.rows()) {
    config::Report found;
    T value = read(row, found);
    if (found.empty()) into.push_back(std::move(value));
    report.append(found);
  }
}

}  // namespace

MeasuredTable read_table(const std::filesystem::path& file, config::Report& report) {
  MeasuredTable result;
  const CsvTable table(file, report);
  if (!table.at().source) return result;
  if (table.has({"gpu", "peak_tflops", "batch", "m", "n", "k", "fraction_of_peak"})) {
    read_lines(table, read_matmul, result.matmuls, report);
  } else if (table.has({"gpu", "peak_tflops", "pass", "batch", "seq", "heads", "kv_heads", "qk_head_dim",
                        "v_head_dim", "fraction_of_peak"})) {
    read_lines(table, read_attention, result.attentions, report);
  } else if (table.has({"cluster", "gpus", "size_bytes", "time_us"})) {
    read_lines(table, read_collective, result.collectives, report);
  } else if (table.has({"gpu", "bytes", "time_us"})) {
    read_lines(table, read_stream, result.streams, report);
  } else {
    report.add(
        table.at(), "",
        "the header names no table that is known here; docs/validation.md lists the columns of each kind");
  }
  return result;
}

Seconds simulated(const MeasuredMatmul& row, const hardware::GpuSpec& gpu) {
  const cost::KernelModel model(gpu, gpu.peak_bf16, 2, 0);
  return (row.grouped ? model.matmul_group("", row.shape, row.output)
                      : model.matmul("", row.shape, row.output))
      .seconds;
}

Seconds simulated(const MeasuredAttention& row, const hardware::GpuSpec& gpu) {
  const cost::KernelModel model(gpu, gpu.peak_bf16, 2, 0);
  return (row.backward ? model.attention_backward("", row.shape) : model.attention_forward("", row.shape))
      .seconds;
}

Seconds simulated(const MeasuredStream& row, const hardware::GpuSpec& gpu) {
  return cost::KernelModel(gpu, gpu.peak_bf16, 2, 0).stream("", row.bytes).seconds;
}

}  // namespace trainsim::validation
