#include "controller/waiting.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace lookout::controller::detail {

namespace asio = boost::asio;

Awaitable<void> uncancelled(Awaitable<void> task, std::function<void()> on_cancel) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr)>(
      [task = std::move(task), on_cancel = std::move(on_cancel)](auto handler) mutable {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
          slot.assign([on_cancel = std::move(on_cancel)](asio::cancellation_type) {
            if (on_cancel) on_cancel();
          });
        }
        // The handler of the new coroutine has no cancellation slot, so it cannot be cancelled.
        const auto executor = asio::get_associated_executor(handler);
        asio::co_spawn(executor, std::move(task),
                       [handler = std::move(handler)](std::exception_ptr error) mutable {
                         std::move(handler)(std::move(error));
                       });
      },
      asio::use_awaitable);
}

Awaitable<void> cancel_as_stop(std::function<Awaitable<void>(std::stop_token)> run,
                               std::stop_token stop) {
  std::stop_source either;
  const std::stop_callback on_stop(stop, [&] { either.request_stop(); });
  const std::function<void()> on_cancel = [either]() mutable { either.request_stop(); };
  co_await uncancelled(run(either.get_token()), on_cancel);
}

}  // namespace lookout::controller::detail
