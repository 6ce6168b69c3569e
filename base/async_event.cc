#include "lookout/base/async_event.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/defer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/intrusive/list.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace lookout {
namespace {

namespace asio = boost::asio;

using TimePoint = AsyncEvent::TimePoint;
/// Resumes the waiting coroutine, and owns its frame until then.
using Waiter = asio::async_result<asio::use_awaitable_t<>, void()>::handler_type;

/// The events of one io_context. Drops their waiters when the context ends, as Asio drops its own
/// operations. Events whose executor is not a strand may outlive it. Thread-safe.
class Waiters : public std::enable_shared_from_this<Waiters> {
 public:
  struct Entry : boost::intrusive::list_base_hook<> {
    std::optional<Waiter> waiter;

    void wake() {
      if (waiter) asio::dispatch(*std::exchange(waiter, std::nullopt));
    }
  };

  void add(Entry& entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(entry);
  }

  void remove(Entry& entry) {
    const std::lock_guard lock(mutex_);
    entries_.erase(entries_.iterator_to(entry));
  }

  void drop() {
    // Destroyed after the mutex is released: their frames may own events.
    std::vector<std::optional<Waiter>> dropped;
    std::vector<std::shared_ptr<Entry>> rung;
    const std::lock_guard lock(mutex_);
    dropped_ = true;
    rung.swap(rung_);
    for (Entry& entry : entries_) dropped.push_back(std::exchange(entry.waiter, std::nullopt));
  }

  /// Wakes the waiter on the context's single thread. An Asio operation costs more than the work of
  /// most waiters, so one operation wakes all waiters that were rung before it runs.
  void ring(std::shared_ptr<Entry> entry, const asio::io_context::executor_type& executor) {
    {
      const std::lock_guard lock(mutex_);
      if (dropped_) return;
      rung_.push_back(std::move(entry));
      if (rung_.size() > 1) return;  // an operation is already posted
    }
    asio::post(executor, [self = shared_from_this()] { self->wake_rung(); });
  }

 private:
  void wake_rung() {
    std::vector<std::shared_ptr<Entry>> waking;
    {
      const std::lock_guard lock(mutex_);
      waking.swap(rung_);
      rung_.swap(spare_);
    }
    for (const auto& entry : waking) entry->wake();
    waking.clear();
    const std::lock_guard lock(mutex_);
    spare_.swap(waking);
  }

  std::mutex mutex_;
  boost::intrusive::list<Entry> entries_;      // guarded by mutex_
  std::vector<std::shared_ptr<Entry>> rung_;   // guarded by mutex_
  std::vector<std::shared_ptr<Entry>> spare_;  // guarded by mutex_; empty, reused for its memory
  bool dropped_ = false;                       // guarded by mutex_
};

/// Asio calls shutdown() when the context ends.
class WaitersService : public asio::execution_context::service {
 public:
  static asio::execution_context::id id;

  explicit WaitersService(asio::execution_context& context) : service(context) {}
  const std::shared_ptr<Waiters>& waiters() const { return waiters_; }

 private:
  void shutdown() override { waiters_->drop(); }

  const std::shared_ptr<Waiters> waiters_ = std::make_shared<Waiters>();
};

asio::execution_context::id WaitersService::id;

}  // namespace

/// Used on the executor only, except by its constructor and destructor.
class AsyncEvent::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(asio::any_io_executor executor)
      : executor_(std::move(executor)),
        waiters_(asio::use_service<WaitersService>(asio::query(executor_, asio::execution::context))
                     .waiters()) {
    waiters_->add(entry_);
  }

  ~State() {
    waiters_->remove(entry_);
    if (entry_.waiter) wake_later();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const asio::any_io_executor& executor() const { return executor_; }

  void wait(Waiter waiter, TimePoint until) {
    auto slot = asio::get_associated_cancellation_slot(waiter);
    if (slot.is_connected()) {
      slot.assign([weak = weak_from_this()](asio::cancellation_type) {
        if (const auto self = weak.lock()) self->wake_later();
      });
    }
    entry_.waiter.emplace(std::move(waiter));
    until_ = until;
    if (until_ < armed_) arm();
  }

  void wake() { entry_.wake(); }

  void ring() {
    std::shared_ptr<State> self = shared_from_this();
    // (Events of a strand must not run concurrently with the strand.)
    if (const auto* one_thread = executor_.target<asio::io_context::executor_type>()) {
      waiters_->ring({std::move(self), &entry_}, *one_thread);
    } else {
      asio::post(executor_, [self = std::move(self)] { self->wake(); });
    }
  }

  void wake_later() {
    if (!entry_.waiter) return;
    asio::defer(executor_, [waiter = *std::exchange(entry_.waiter, std::nullopt)]() mutable {
      asio::dispatch(std::move(waiter));
    });
  }

 private:
  void arm() {
    armed_ = until_;
    if (!timer_) timer_.emplace(executor_);
    timer_->expires_at(armed_);
    timer_->async_wait([weak = weak_from_this()](boost::system::error_code error) {
      const auto self = weak.lock();
      if (error || !self) return;
      self->armed_ = TimePoint::max();
      if (!self->entry_.waiter) return;
      if (self->until_ <= std::chrono::steady_clock::now()) {
        self->wake();
      } else if (self->until_ < TimePoint::max()) {
        self->arm();
      }
    });
  }

  const asio::any_io_executor executor_;
  const std::shared_ptr<Waiters> waiters_;
  Waiters::Entry entry_;
  TimePoint until_ = TimePoint::max();  // of the current wait
  TimePoint armed_ = TimePoint::max();  // when timer_ ends
  std::optional<asio::steady_timer> timer_;
};

AsyncEvent::AsyncEvent(asio::any_io_executor executor)
    : state_(std::make_shared<State>(std::move(executor))) {}

void AsyncEvent::ring() const { state_->ring(); }

void AsyncEvent::ring_next() const {
  asio::defer(state_->executor(), [state = state_] { state->wake(); });
}

void AsyncEvent::ring_here() const { state_->wake_later(); }

Awaitable<void> AsyncEvent::wait(TimePoint until) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [state = state_.get(), until](Waiter waiter) { state->wait(std::move(waiter), until); },
      asio::use_awaitable);
}

const asio::any_io_executor& AsyncEvent::executor() const { return state_->executor(); }

}  // namespace lookout
