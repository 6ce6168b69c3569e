// Reading many keys in several requests.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "apiserver/storage/etcd3/client.h"
#include "apiserver/storage/etcd3/range_stream.h"
#include "lookout/api/error.h"

namespace lookout::apiserver::storage::etcd3 {

/// A range of keys in pages, all at one revision. After the first page, uses a RangeStream if it is
/// supported; if that ends early, the rest is read in pages. For one coroutine at a time.
class RangePages {
 public:
  /// Sends a request to etcd.
  using Ask = std::function<Awaitable<RangeResponse>(RangeRequest request)>;
  /// Opens a stream for that reader; null if streams are not supported. An empty function: pages
  /// only.
  using Open = std::function<std::unique_ptr<RangeStream>(RangeRequest request,
                                                          boost::asio::any_io_executor reader)>;

  /// From `start` to before `end`, or `start` alone if `end` is empty; at `revision`, or at the
  /// newest one (0).
  RangePages(Ask ask, Open open, std::string start, std::string end, Revision revision)
      : ask_(std::move(ask)),
        open_(std::move(open)),
        start_(std::move(start)),
        end_(std::move(end)),
        revision_(revision) {}

  /// The revision of all pages; known after the first one.
  Revision revision() const { return revision_; }
  /// Whether there may be another page.
  bool more() const { return more_; }

  /// The next page: at most `limit` keys (0: all remaining ones), or the received part of the stream.
  /// Throws what `ask` throws.
  Awaitable<RangeResponse> next(std::size_t limit) {
    if (stream_ != nullptr) {
      RangeResponse part;
      part.kvs = co_await stream_->next();
      part.revision = revision_;
      if (!part.kvs.empty()) {
        start_ = part.kvs.back().key + '\0';
        part.more = true;
        co_return part;
      }
      more_ = !stream_->is_complete();
      stream_.reset();
      if (!more_) co_return part;
    }
    RangeRequest request = rest(limit);
    RangeResponse page = co_await ask_(std::move(request));
    if (page.kvs.empty() && page.more)
      throw Error("no results were found, but etcd indicated there were more values remaining");
    if (revision_ == 0) revision_ = page.revision;
    if (!page.kvs.empty()) start_ = page.kvs.back().key + '\0';
    more_ = page.more;
    // Only one stream per range: if it breaks, another one may break, too.
    const Open open = std::exchange(open_, nullptr);
    if (open && more_) {
      const auto reader = co_await boost::asio::this_coro::executor;
      stream_ = open(rest(0), reader);
    }
    co_return page;
  }

 private:
  RangeRequest rest(std::size_t limit) const {
    RangeRequest request;
    request.key = start_;
    request.range_end = end_;
    request.limit = limit;
    request.revision = revision_;
    return request;
  }

  const Ask ask_;
  Open open_;
  std::string start_;
  const std::string end_;
  Revision revision_;
  bool more_ = true;
  std::unique_ptr<RangeStream> stream_;
};

}  // namespace lookout::apiserver::storage::etcd3
