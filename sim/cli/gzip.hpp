// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string_view>

namespace trainsim::cli {

/// Compresses a text that comes in pieces into a gzip file (RFC 1952). Equal texts give equal bytes.
class Gzip {
 public:
  using Sink = std::function<void(std::string_view)>;
  /// Compressed pieces go to `sink`.
  explicit Gzip(Sink sink);
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  void append(std::string_view piece);
  /// Hands on what is left. To be called once, after the last piece.
  void finish();

 private:
  struct State;
  void compress(std::string_view piece, int flush);

  Sink sink_;
  std::unique_ptr<State> state_;
};

}  // namespace trainsim::cli
