// OwnRun: a blocking run() that the destructor of its object ends.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

#include "lookout/base/event_loop.h"
#include "lookout/base/pinned.h"

namespace lookout::controller::detail {

/// Of an object whose run() blocks a thread of the program: a program that destroys the object first
/// (`std::jthread thread; Manager manager;`) must not end in freed memory.
class OwnRun : public base::Pinned {
 public:
  /// Waits for `impl->run(stop)` on impl->loop(). Keeps `impl` alive, and releases it before end()
  /// returns.
  template <class Impl>
  static void run(const std::shared_ptr<Impl>& impl, std::stop_token stop) {
    const std::shared_ptr<OwnRun> own = impl->own_run();
    const Entry entry(*own);
    const std::shared_ptr<Impl> kept = impl;
    std::stop_source either;
    const auto forward = [either] { std::stop_source(either).request_stop(); };
    const std::stop_callback on_stop(std::move(stop), forward);
    const std::stop_callback on_end(own->end_.get_token(), forward);
    kept->loop().run(kept->run(either.get_token()));
  }

  /// Ends a run on another thread, and waits for it; on the event loop, only requests its stop.
  void end(const EventLoop& loop) {
    end_.request_stop();
    if (loop.running_in_this_thread()) return;
    std::unique_lock lock(mutex_);
    left_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  class Entry : public base::Pinned {
   public:
    explicit Entry(OwnRun& own) : own_(own) {
      const std::lock_guard lock(own_.mutex_);
      ++own_.running_;
    }
    ~Entry() {
      const std::lock_guard lock(own_.mutex_);
      --own_.running_;
      own_.left_.notify_all();
    }

   private:
    OwnRun& own_;
  };

  std::stop_source end_;
  std::mutex mutex_;
  std::condition_variable left_;
  int running_ = 0;  // guarded by mutex_
};

}  // namespace lookout::controller::detail
