// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/trace_file.hpp"

#include "sim/base/diagnostics.hpp"
#include "sim/cli/gzip.hpp"
#include "sim/report/trace.hpp"

namespace trainsim::cli {

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
  const report::TraceSource source{summary, recording.job, recording.timeline, TRAINSIM_VERSION};
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
