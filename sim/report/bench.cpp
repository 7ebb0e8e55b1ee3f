// SPDX-License-Identifier: Apache-2.0
#include "sim/report/bench.hpp"

#include <algorithm>
#include <cmath>

#include "sim/program/collective.hpp"
#include "sim/report/csv_cells.hpp"
#include "sim/report/format.hpp"
#include "sim/report/json_dump.hpp"

namespace trainsim::report {

namespace {

/// Size from which errors are summed up apart: below it latencies matter more than bandwidth.
constexpr double kLargeMessage = 8 * kMebi;

double error_of(const BenchRow& row) {
  return row.time / *row.measured - 1.0;
}

bool is_compared(const Bench& bench) {
  return !bench.rows.empty() && bench.rows.front().measured.has_value();
}

std::string signed_percent(double share) {
  return (share < 0 ? "-" : "+") + percent(std::abs(share));
}

/// "mean absolute error 3.2 % from 8 MiB (9 sizes), 12 % below (4 sizes)."
std::string error_line(const Bench& bench) {
  const auto mean = [&bench](bool large) {
    double sum = 0;
    int rows = 0;
    for (const BenchRow& row : bench.rows) {
      if ((row.bytes >= kLargeMessage) != large) continue;
      sum += std::abs(error_of(row));
      ++rows;
    }
    if (rows == 0) return std::string("none");
    return percent(sum / rows) + " (" + std::to_string(rows) + (rows == 1 ? " size)" : " sizes)");
  };
  return "Mean absolute error of the time: " + mean(true) + " from 8 MiB up, " + mean(false) +
         " below. Error = simulated / measured - 1.\n";
}

std::string where(const Bench& bench) {
  return std::to_string(bench.gpus) + " GPUs on " + std::to_string(bench.nodes) +
         (bench.nodes == 1 ? " node" : " nodes") + " of " + bench.cluster;
}

std::string bandwidth(double bytes_per_second) {
  return number(bytes_per_second / kGiga, 4);
}

std::string line(const Bench& bench, const BenchRow& row) {
  std::string text = pad_left(bytes_text(row.bytes), 12) + "  " + pad_right(to_string(row.algorithm), 14) +
                     pad_right(to_string(row.protocol), 9) + pad_left(duration(row.time), 10) +
                     pad_left(bandwidth(algorithm_bandwidth(row)), 10) +
                     pad_left(bandwidth(bus_bandwidth(bench, row)), 10);
  if (row.measured) {
    text += pad_left(duration(*row.measured), 12) + pad_left(signed_percent(error_of(row)), 10);
  }
  return text + "\n";
}

}  // namespace

double algorithm_bandwidth(const BenchRow& row) {
  return row.bytes / row.time;
}

double bus_bandwidth(const Bench& bench, const BenchRow& row) {
  return program::bytes_per_member(bench.op, bench.gpus, row.bytes) / row.time;
}

std::string to_text(const Bench& bench) {
  std::string text = std::string(program::to_string(bench.op)) + " over " + where(bench) +
                     ", nothing else on the network\n\n";
  text += pad_left("size", 12) + "  " + pad_right("algorithm", 14) + pad_right("protocol", 9) +
          pad_left("time", 10) + pad_left("algbw", 10) + pad_left("busbw", 10);
  if (is_compared(bench)) text += pad_left("measured", 12) + pad_left("error", 10);
  text += "\n";
  for (const BenchRow& row : bench.rows) text += line(bench, row);
  text +=
      "\nalgbw = size / time, busbw = algbw times what a ring member sends per byte, in GB/s (10^9), as in "
      "nccl-tests.\n";
  return is_compared(bench) ? text + error_line(bench) : text;
}

std::string to_json(const Bench& bench) {
  Json json;
  json["schema"] = 1;
  json["cluster"] = bench.cluster;
  json["op"] = program::to_string(bench.op);
  json["gpus"] = bench.gpus;
  json["nodes"] = bench.nodes;
  json["rows"] = Json::array();
  for (const BenchRow& row : bench.rows) {
    Json entry = {{"size_bytes", row.bytes},
                  {"algorithm", to_string(row.algorithm)},
                  {"protocol", to_string(row.protocol)},
                  {"time_s", row.time},
                  {"algbw_GBps", algorithm_bandwidth(row) / kGiga},
                  {"busbw_GBps", bus_bandwidth(bench, row) / kGiga}};
    if (row.measured) {
      entry["measured_s"] = *row.measured;
      entry["error"] = error_of(row);
    }
    json["rows"].push_back(std::move(entry));
  }
  return dump(json);
}

std::string to_csv(const Bench& bench) {
  const bool compared = is_compared(bench);
  std::string text = "cluster,op,gpus,size_bytes,algorithm,protocol,time_s,algbw_GBps,busbw_GBps";
  text += compared ? ",measured_s,error\n" : "\n";
  for (const BenchRow& row : bench.rows) {
    text += cell(bench.cluster) + "," + program::to_string(bench.op) + "," + std::to_string(bench.gpus) +
            "," + exact(row.bytes) + "," + to_string(row.algorithm) + "," + to_string(row.protocol) + "," +
            exact(row.time) + "," + exact(algorithm_bandwidth(row) / kGiga) + "," +
            exact(bus_bandwidth(bench, row) / kGiga);
    if (compared) text += "," + exact(*row.measured) + "," + exact(error_of(row));
    text += "\n";
  }
  return text;
}

}  // namespace trainsim::report
