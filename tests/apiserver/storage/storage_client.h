// A storage for tests: every coroutine as a blocking call.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/apiserver/storage/interface.h"
#include "tests/support/bounded_wait.h"

namespace lookout::apiserver::storage {

/// One thread that runs coroutines.
class TestThread {
 public:
  TestThread() : work_(context_.get_executor()), thread_([this] { context_.run(); }) {}
  ~TestThread() {
    context_.stop();
    thread_.join();
  }
  TestThread(const TestThread&) = delete;
  TestThread& operator=(const TestThread&) = delete;

  template <class T>
  T run(Awaitable<T> task) {
    return test::get(boost::asio::co_spawn(context_, std::move(task), boost::asio::use_future));
  }

 private:
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

/// Options of a watch for changes after the revision.
inline WatchOptions from_revision(Revision revision) {
  WatchOptions options;
  options.start = WatchOptions::Start::kRevision;
  options.revision = revision;
  return options;
}

/// "ADDED shop/web" for each event.
std::vector<std::string> describe(const std::vector<Event>& events);

/// A watch with its own thread, which may outlive everything except the backend.
class WatchReader {
 public:
  WatchReader(Interface& storage, std::string key, bool recursive, WatchOptions options);
  ~WatchReader();

  void on_stuck(std::function<void()> callback) { watch_->on_stuck = std::move(callback); }
  /// The next `count` events; fewer on timeout or if the watch ends.
  std::vector<Event> take_events(std::size_t count);
  std::vector<std::string> take(std::size_t count) { return describe(take_events(count)); }
  /// All events up to the end of the watch.
  std::vector<Event> take_until_the_end();
  /// Returns the events that are available. Afterwards the watcher is parked.
  std::vector<Event> poll();
  void request_bookmark();
  void cancel() { watch_->cancel(); }

 private:
  bool next(std::vector<Event>& events, std::chrono::steady_clock::time_point until);

  TestThread thread_;
  std::unique_ptr<Watch> watch_;
  std::vector<Event> rest_;
};

class StorageClient {
 public:
  explicit StorageClient(Interface& storage) : storage_(storage) {}

  api::Object create(std::string key, api::Object object) {
    return thread_.run(storage_.create(std::move(key), std::move(object)));
  }
  api::Object get(std::string key, Revision not_older_than = 0) {
    return thread_.run(storage_.get(std::move(key), not_older_than));
  }
  /// May be called from within an update.
  api::Object update(std::string key, Interface::Update update, bool create_if_absent = false,
                     Preconditions preconditions = {}) {
    TestThread thread;
    return thread.run(storage_.guaranteed_update(std::move(key), create_if_absent,
                                                 std::move(preconditions), std::move(update)));
  }
  api::Object remove(std::string key, Preconditions preconditions = {},
                     Interface::Validate validate = {}) {
    return thread_.run(
        storage_.remove(std::move(key), std::move(preconditions), std::move(validate)));
  }

  struct Page {
    Revision revision = 0;
    std::string continue_key;
    std::optional<std::int64_t> remaining;
    std::vector<api::Object> objects;
  };
  Page list(std::string key, ListOptions options = {}, bool recursive = true);
  /// Waits until lists are served, as a cache rejects them until it is filled. False on timeout.
  bool wait_until_served();

  std::unique_ptr<WatchReader> watch(std::string key, WatchOptions options, bool recursive = true) {
    return std::make_unique<WatchReader>(storage_, std::move(key), recursive, std::move(options));
  }
  Revision current_revision() { return thread_.run(storage_.current_revision()); }

 private:
  Interface& storage_;
  TestThread thread_;
};

}  // namespace lookout::apiserver::storage
