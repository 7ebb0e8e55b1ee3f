// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/gzip.hpp"

#include <array>
#include <new>
#include <utility>

#define ZLIB_CONST
#include <zlib.h>

namespace trainsim::cli {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16U;
/// Largest window, with a gzip header and trailer (zlib.h, deflateInit2).
constexpr int kWindowOfGzip = 15 + 16;
constexpr int kMemoryLevel = 8;

}  // namespace

struct Gzip::State {
  z_stream stream{};
  std::array<char, kPiece> out{};
};

Gzip::Gzip(Sink sink) : sink_(std::move(sink)), state_(std::make_unique<State>()) {
  const int status = deflateInit2(&state_->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowOfGzip,
                                  kMemoryLevel, Z_DEFAULT_STRATEGY);
  // The arguments being right, it can only lack memory.
  if (status != Z_OK) throw std::bad_alloc();
}

Gzip::~Gzip() {
  deflateEnd(&state_->stream);
}

void Gzip::append(std::string_view piece) {
  compress(piece, Z_NO_FLUSH);
}

void Gzip::finish() {
  compress({}, Z_FINISH);
}

void Gzip::compress(std::string_view piece, int flush) {
  z_stream& stream = state_->stream;
  stream.next_in = reinterpret_cast<const Bytef*>(piece.data());
  stream.avail_in = static_cast<uInt>(piece.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(state_->out.data());
    stream.avail_out = static_cast<uInt>(state_->out.size());
    deflate(&stream, flush);
    sink_({state_->out.data(), state_->out.size() - stream.avail_out});
  } while (stream.avail_out == 0);
}

}  // namespace trainsim::cli
