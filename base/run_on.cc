#include "lookout/base/detail/run_on.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>

namespace lookout::detail {
namespace {

namespace asio = boost::asio;

/// Cancels a task. Owned by the task and its cancellation slot; used only on the task's executor.
struct Cancellation {
  asio::cancellation_signal signal;
  bool over = false;
};

/// Forwards the cancellation of the waiting coroutine to the task.
void forward(asio::cancellation_slot slot, const asio::any_io_executor& executor,
             const std::shared_ptr<Cancellation>& cancellation) {
  if (!slot.is_connected()) return;
  slot.assign([executor, cancellation](asio::cancellation_type type) {
    asio::post(executor, [cancellation, type] {
      if (!cancellation->over) cancellation->signal.emit(type);
    });
  });
}

}  // namespace

Awaitable<void> run_on_void(asio::any_io_executor executor, Awaitable<void> task) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr)>(
      [executor = std::move(executor), task = std::move(task)](auto handler) mutable {
        const auto cancellation = std::make_shared<Cancellation>();
        forward(asio::get_associated_cancellation_slot(handler), executor, cancellation);
        // As for an Asio operation, the waiting coroutine's context has outstanding work until the task ends.
        auto back = asio::prefer(asio::get_associated_executor(handler),
                                 asio::execution::outstanding_work.tracked);
        auto done = [cancellation, back = std::move(back),
                     handler = std::move(handler)](std::exception_ptr error) mutable {
          cancellation->over = true;
          asio::dispatch(back, [handler = std::move(handler), error = std::move(error)]() mutable {
            std::move(handler)(std::move(error));
          });
        };
        asio::co_spawn(
            executor, std::move(task),
            asio::bind_cancellation_slot(cancellation->signal.slot(),
                                         asio::bind_executor(executor, std::move(done))));
      },
      asio::use_awaitable);
}

}  // namespace lookout::detail
