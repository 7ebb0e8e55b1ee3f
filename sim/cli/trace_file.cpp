// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/trace_file.hpp"

#include <vector>

#include <spdlog/spdlog.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/gzip.hpp"
#include "sim/report/trace.hpp"

namespace trainsim::cli {

namespace {

/// Spans whose complete events are about 30 MB, from which on browsers become slow.
constexpr std::size_t kManySpans = 150'000;

std::size_t count_spans(const program::Timeline& timeline) {
  std::size_t count = 0;
  for (const program::RankTimeline& rank : timeline.ranks) {
    for (const std::vector<program::Span>& spans : rank.spans) count += spans.size();
  }
  return count;
}

}  // namespace

TraceFile::TraceFile(const std::string& path, const std::string& output)
    : compressed_(path.ends_with(".gz")) {
  if (path.empty()) return;
  if (OutputFile::clash(path, output)) {
    throw InputError("trainsim: error: --trace and --output both name '" + path +
                     "'; give each a file of its own");
  }
  file_.emplace(path);
}

void TraceFile::write(const report::Summary& summary, const Recording& recording) {
  if (!file_) return;
  const std::size_t spans = count_spans(recording.timeline);
  const bool compact = !compressed_ && spans > kManySpans;
  if (compact) {
    spdlog::warn(
        "the trace has {} events and is shortened (docs/trace.md); all of it goes into a file whose name "
        "ends "
        "in .gz",
        spans);
  }
  const report::TraceSource source{summary, recording.job, recording.timeline, TRAINSIM_VERSION, compact};
  const report::TextSink plain = [this](std::string_view piece) { file_->append(piece); };
  if (compressed_) {
    Gzip gzip(plain);
    report::write_trace(source, [&gzip](std::string_view piece) { gzip.append(piece); });
    gzip.finish();
  } else {
    report::write_trace(source, plain);
  }
  file_->finish();
}

}  // namespace trainsim::cli
