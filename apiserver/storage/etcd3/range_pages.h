// Reading many keys in several requests.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "apiserver/storage/etcd3/client.h"
#include "lookout/api/error.h"

namespace lookout::apiserver::storage::etcd3 {

/// A range of keys, page by page, all of it at one revision. One coroutine at a time uses it.
class RangePages {
 public:
  /// Sends a request to etcd.
  using Ask = std::function<Awaitable<RangeResponse>(RangeRequest request)>;

  /// From `start` to before `end`, or `start` alone if `end` is empty; at `revision`, or at the
  /// newest one (0).
  RangePages(Ask ask, std::string start, std::string end, Revision revision)
      : ask_(std::move(ask)), start_(std::move(start)), end_(std::move(end)), revision_(revision) {}

  /// The revision of all pages; known after the first one.
  Revision revision() const { return revision_; }
  /// Whether there may be another page.
  bool more() const { return more_; }

  /// The next page, of `limit` keys at most (0: of all that are left). Throws what `ask` throws.
  Awaitable<RangeResponse> next(std::size_t limit) {
    RangeRequest request;
    request.key = start_;
    request.range_end = end_;
    request.limit = limit;
    request.revision = revision_;
    RangeResponse page = co_await ask_(std::move(request));
    if (page.kvs.empty() && page.more)
      throw Error("no results were found, but etcd indicated there were more values remaining");
    if (revision_ == 0) revision_ = page.revision;
    if (!page.kvs.empty()) start_ = page.kvs.back().key + '\0';
    more_ = page.more;
    co_return page;
  }

 private:
  const Ask ask_;
  std::string start_;
  const std::string end_;
  Revision revision_;
  bool more_ = true;
};

}  // namespace lookout::apiserver::storage::etcd3
