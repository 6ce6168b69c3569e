#include "apiserver/endpoints/compression.h"

#include <zlib.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/base/ascii.h"
#include "lookout/base/error.h"

namespace lookout::apiserver::endpoints {
namespace {

using http::Piece;

constexpr std::size_t kThreshold = 128u << 10;
/// The fastest level, as in kube-apiserver.
constexpr int kLevel = 1;
/// 15 bits of window, and gzip's header.
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 8;

/// True for "gzip", "gzip;q=1.0" and "deflate, gzip", false for "gzip;q=0".
bool takes_gzip(std::string_view accepted) {
  while (!accepted.empty()) {
    const std::size_t comma = accepted.find(',');
    const std::string_view one = accepted.substr(0, comma);
    const std::size_t semicolon = one.find(';');
    if (base::equal_ignoring_case(base::trim(one.substr(0, semicolon)), "gzip")) {
      if (semicolon == std::string_view::npos) return true;
      const std::string_view weight = base::trim(one.substr(semicolon + 1));
      return weight.find_first_not_of("q=0. ") != std::string_view::npos;
    }
    accepted = comma == std::string_view::npos ? std::string_view() : accepted.substr(comma + 1);
  }
  return false;
}

class Compressor {
 public:
  Compressor() {
    if (deflateInit2(&stream_, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
        Z_OK)
      throw Error("zlib cannot begin to compress");
  }
  ~Compressor() { deflateEnd(&stream_); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  /// Appends zlib's available output; at the end, all of it.
  void add(std::string_view text, bool is_end, std::string& out) {
    // zlib does not write to its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    for (;;) {
      constexpr std::size_t kStep = 32u << 10;
      const std::size_t begin = out.size();
      out.resize(begin + kStep);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + begin);
      stream_.avail_out = static_cast<uInt>(kStep);
      deflate(&stream_, is_end ? Z_FINISH : Z_NO_FLUSH);
      const bool is_full = stream_.avail_out == 0;
      out.resize(begin + kStep - stream_.avail_out);
      if (!is_full) return;
    }
  }

 private:
  z_stream stream_{};
};

/// The bytes of another stream, compressed while they are sent.
class CompressedStream : public http::BodyStream {
 public:
  /// `begin` was already taken from `source`.
  CompressedStream(std::vector<Piece> begin, std::unique_ptr<BodyStream> source)
      : begin_(std::move(begin)), source_(std::move(source)) {}

  Awaitable<bool> next(std::vector<Piece>& pieces) override {
    pieces.clear();
    std::string out;
    bool more = true;
    // zlib may buffer its input.
    while (more && out.empty()) {
      std::vector<Piece> some = std::exchange(begin_, {});
      if (some.empty()) more = co_await source_->next(some);
      for (const Piece& piece : some) compressor_.add(*piece, false, out);
      if (!more) compressor_.add({}, true, out);
    }
    pieces.push_back(std::make_shared<const std::string>(std::move(out)));
    co_return more;
  }
  void end() override { source_->end(); }
  void on_slow_client() override { source_->on_slow_client(); }

 private:
  std::vector<Piece> begin_;
  const std::unique_ptr<BodyStream> source_;
  Compressor compressor_;
};

void announce(http::Response& response) {
  response.headers.emplace_back("Content-Encoding", "gzip");
  response.headers.emplace_back("Vary", "Accept-Encoding");
}

}  // namespace

Awaitable<void> compress(const http::Request& request, http::Response& response) {
  if (request.method != "GET" || !takes_gzip(request.header("accept-encoding"))) co_return;
  if (!response.stream) {
    if (response.body.size() < kThreshold) co_return;
    std::string out;
    Compressor().add(response.body, true, out);
    response.body = std::move(out);
    announce(response);
    co_return;
  }
  if (response.stream->is_open_ended()) co_return;
  // The length of a stream is not known in advance.
  std::vector<Piece> begin;
  std::size_t size = 0;
  bool more = true;
  while (more && size < kThreshold) {
    std::vector<Piece> some;
    more = co_await response.stream->next(some);
    for (const Piece& piece : some) size += piece->size();
    begin.insert(begin.end(), std::make_move_iterator(some.begin()),
                 std::make_move_iterator(some.end()));
  }
  if (size < kThreshold) {
    for (const Piece& piece : begin) response.body += *piece;
    response.stream = nullptr;
    co_return;
  }
  // The stream has ended, so compress the whole body at once.
  if (!more) {
    Compressor compressor;
    std::string out;
    for (const Piece& piece : begin) compressor.add(*piece, false, out);
    compressor.add({}, true, out);
    response.body = std::move(out);
    response.stream = nullptr;
  } else {
    response.stream =
        std::make_unique<CompressedStream>(std::move(begin), std::move(response.stream));
  }
  announce(response);
}

}  // namespace lookout::apiserver::endpoints
