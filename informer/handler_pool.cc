#include "lookout/informer/handler_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "lookout/base/clock.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/error.h"

namespace lookout::informer {

class HandlerPool::Impl : public std::enable_shared_from_this<HandlerPool::Impl> {
 public:
  Impl(std::shared_ptr<EventLoop> loop, HandlerPoolOptions options)
      : loop_(std::move(loop)),
        options_(options),
        timer_(boost::asio::make_strand(loop_->context())) {
    options_.threads = std::max(1u, options_.threads);
    options_.max_threads = std::max(options_.max_threads, options_.threads);
    options_.grow_after = Clock::limited(options_.grow_after);
    options_.shrink_after = Clock::limited(options_.shrink_after);
  }

  void post(std::function<void()> task) {
    if (!task) throw InvalidArgument("a handler pool was given an empty task");
    std::string problem;
    {
      std::unique_lock lock(mutex_);
      if (stopping_) return;
      queue_.push_back({std::move(task), std::chrono::steady_clock::now()});
      // A thread that has been woken or started counts as idle until it runs: it can take one task.
      if (queue_.size() <= idle_) {
        lock.unlock();
        wake_.notify_one();
      } else if (running_ >= options_.threads || !start_thread(problem)) {
        watch_queue();
      }
    }
    if (!problem.empty()) log::error("{}", problem);
  }

  void stop() {
    std::list<std::thread> threads;
    std::deque<Task> dropped;  // destroyed without the mutex: their captures may call the pool
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      dropped.swap(queue_);
      threads.splice(threads.end(), threads_);
      threads.splice(threads.end(), finished_);
    }
    wake_.notify_all();
    dropped.clear();
    for (auto& thread : threads) {
      // A task of the pool may release the last reference to the pool.
      if (thread.get_id() == std::this_thread::get_id()) {
        thread.detach();
      } else {
        thread.join();
      }
    }
  }

  unsigned threads() const {
    const std::lock_guard lock(mutex_);
    return running_;
  }

 private:
  // From this many threads on, the pool grows more slowly: few programs have so many blocking
  // handlers, and more threads do not speed up long computations.
  static constexpr unsigned kMany = 64;
  static constexpr int kPatience = 10;
  static constexpr unsigned kShare = 16;
  /// The pause after a thread could not be started.
  static constexpr std::chrono::milliseconds kPause{100};

  struct Task {
    std::function<void()> run;
    std::chrono::steady_clock::time_point since;
  };

  /// Under the mutex. Returns false if the system has no thread left: the tasks wait. The first failure
  /// of several is a problem to log, without the mutex.
  bool start_thread(std::string& problem) {
    join_finished();
    threads_.emplace_back();
    const auto self = std::prev(threads_.end());
    try {
      *self = std::thread([impl = shared_from_this(), self] { impl->work(self); });
      ++running_;
      ++idle_;
    } catch (const std::system_error& e) {
      threads_.erase(self);
      if (!refused_) {
        problem = fmt::format(
            "handler pool: cannot start a thread, and tries again: {} ({} threads, {} waiting "
            "tasks)",
            e.what(), running_, queue_.size());
      }
      refused_ = true;
      return false;
    }
    refused_ = false;
    return true;
  }

  void join_finished() {
    for (auto& thread : finished_) thread.join();
    finished_.clear();
  }

  void work(std::list<std::thread>::iterator self) {
    std::unique_lock lock(mutex_);
    --idle_;
    while (!stopping_) {
      if (queue_.empty()) {
        ++idle_;
        const bool woken = wake_.wait_for(lock, options_.shrink_after,
                                          [&] { return stopping_ || !queue_.empty(); });
        --idle_;
        if (!woken && running_ > options_.threads) {
          finished_.splice(finished_.end(), threads_, self);
          break;
        }
        continue;
      }
      Task task = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      task.run();
      task.run = nullptr;
      lock.lock();
    }
    --running_;
  }

  /// Checks again later, as long as tasks are waiting. Requires the mutex.
  void watch_queue() {
    if (watching_ || running_ >= options_.max_threads) return;
    watching_ = true;
    boost::asio::post(timer_.get_executor(), [self = shared_from_this()] {
      self->timer_.expires_after(self->look_after());
      self->timer_.async_wait([self](boost::system::error_code) { self->grow(); });
    });
  }

  std::chrono::milliseconds look_after() const {
    const std::lock_guard lock(mutex_);
    return lacks_threads() ? std::min(options_.grow_after, kPause) : options_.grow_after;
  }

  /// True if one of the usual threads could not be started when it was needed. With the mutex, while
  /// tasks wait.
  bool lacks_threads() const { return running_ < options_.threads; }

  void grow() {
    std::string problem;
    grow(problem);
    if (!problem.empty()) log::error("{}", problem);
  }

  void grow(std::string& problem) {
    const std::lock_guard lock(mutex_);
    watching_ = false;
    if (stopping_ || queue_.empty()) return;
    const auto waited = std::chrono::steady_clock::now() - queue_.front().since;
    const bool many = running_ >= kMany;
    if (idle_ == 0 && (lacks_threads() || waited >= options_.grow_after * (many ? kPatience : 1))) {
      const std::size_t most = std::min<std::size_t>(many ? running_ / kShare : 1, queue_.size());
      for (std::size_t i = 0; i < most && running_ < options_.max_threads; ++i) {
        if (!start_thread(problem)) break;
      }
    }
    watch_queue();
  }

  const std::shared_ptr<EventLoop> loop_;
  HandlerPoolOptions options_;
  boost::asio::steady_timer timer_;  // on its strand

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // All guarded by mutex_.
  std::deque<Task> queue_;
  std::list<std::thread> threads_;
  std::list<std::thread> finished_;  // ended threads to join
  unsigned running_ = 0;
  unsigned idle_ = 0;
  bool refused_ = false;  // the last thread could not be started
  bool watching_ = false;
  bool stopping_ = false;
};

HandlerPool::HandlerPool(std::shared_ptr<EventLoop> loop, HandlerPoolOptions options)
    : impl_(std::make_shared<Impl>(std::move(loop), options)) {}
HandlerPool::~HandlerPool() { impl_->stop(); }
void HandlerPool::post(std::function<void()> task) { impl_->post(std::move(task)); }
unsigned HandlerPool::threads() const { return impl_->threads(); }

}  // namespace lookout::informer
