// Flow: a response, between the transport and the coroutine that reads it.
#pragma once

#include <curl/curl.h>

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/rest/detail/http_transport.h"
#include "rest/buffer_pool.h"

namespace lookout::rest::detail {

class CurlTransport;

/// Written on the transport's strand; read by a coroutine on any thread.
struct Flow {
  // The maximum size of an unread body. Beyond it, the transfer is paused.
  static constexpr std::size_t kHighWater = 256u << 10;
  // With this much unread data, the reader is woken immediately, on another thread. Otherwise it
  // would wait until all ready sockets have been read, whose data would be in memory, too.
  static constexpr std::size_t kMuch = 32u << 10;

  Flow(boost::asio::any_io_executor executor, std::weak_ptr<CurlTransport> owner,
       std::shared_ptr<BufferPool> pool, std::string description)
      : event(std::move(executor)),
        transport(std::move(owner)),
        buffers(std::move(pool)),
        what(std::move(description)) {}

  AsyncEvent event;
  const std::weak_ptr<CurlTransport> transport;
  const std::shared_ptr<BufferPool> buffers;
  const std::string what;  // "GET https://host/path", for messages

  std::mutex mutex;
  std::optional<HttpHead> head;  // guarded by mutex, as all below
  std::string buffer;
  bool paused = false;
  bool finished = false;
  std::optional<TransportError> error;
  bool cancelled = false;

  CURL* easy = nullptr;  // used only on the transport's strand; null before and after the transfer

  /// Call with the mutex held.
  void throw_if_cancelled() const {
    if (!cancelled) return;
    // A recorded cancellation has a more precise message.
    if (error && error->kind() == TransportError::Kind::kCancelled) throw TransportError(*error);
    throw TransportError(TransportError::Kind::kCancelled, what + ": cancelled");
  }

  /// Returns whether the reader must be woken.
  void finish(std::optional<TransportError> why) {
    const std::lock_guard lock(mutex);
    finished = true;
    error = std::move(why);
  }
};

}  // namespace lookout::rest::detail
