// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace trainsim::cli {

/// What to calibrate.
struct CalibrationRequest {
  /// Kernel tables (.csv) and outputs of nccl-tests (anything else).
  std::vector<std::string> files;
  /// A preset to start from and to extend: of a GPU, or of a cluster; the other is empty.
  std::string gpu;
  std::string cluster;
};

/// The outcome of a calibration.
struct CalibrationText {
  /// A GPU or cluster as YAML, which extends the preset.
  std::string yaml;
  /// Sentences: constants that the data can't determine, lines that could not be read.
  std::vector<std::string> warnings;
};

/// Fits the constants that the files determine. Throws InputError when there is nothing to fit.
CalibrationText calibrate_files(const CalibrationRequest& request);

}  // namespace trainsim::cli
