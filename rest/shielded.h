// Support for Asio's cancellation of coroutines.
#pragma once

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

#include "lookout/base/event_loop.h"
#include "lookout/rest/error.h"

namespace lookout::rest::detail {

[[noreturn]] inline void throw_cancelled() {
  throw TransportError(TransportError::Kind::kCancelled, "cancelled by the calling coroutine");
}

/// Whether Asio has cancelled the coroutine with this state.
inline bool is_set(const boost::asio::cancellation_state& state) {
  return state.cancelled() != boost::asio::cancellation_type::none;
}

/// Runs `task`. If Asio cancels it (`task || timer` in a caller, a cancellation slot), throws the
/// same error as for a stop.
template <class T>
Awaitable<T> shielded(Awaitable<T> task) {
  try {
    co_return co_await std::move(task);
  } catch (const boost::system::system_error& e) {
    if (e.code() != boost::asio::error::operation_aborted) throw;
  }
  throw_cancelled();
}

}  // namespace lookout::rest::detail
