// A source with scripted responses.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lookout/tools/cache/lister_watcher.h"

namespace lookout::test {

/// Answers requests with prepared responses, in order; a request without a prepared response waits
/// for one. For tests on one thread that polls an io_context.
class FakeListerWatcher : public cache::ListerWatcher {
 public:
  struct Page {
    std::vector<api::Object> items;
    std::string resource_version = {};
    std::string continue_token = {};
    std::size_t malformed_items = 0;
    std::string api_version = "v1";
    std::string kind = "PodList";
    std::vector<std::string> malformed_keys = {};
  };
  using NextEvents = std::function<bool(std::vector<api::WatchEvent>&)>;

  void list_returns(Page page) { lists_to_come_.push_back({std::move(page), nullptr}), ring(); }
  /// The list fails after it has delivered these items.
  template <class E>
  void list_throws(E error, std::vector<api::Object> items = {}) {
    lists_to_come_.push_back({{std::move(items), {}, {}}, std::make_exception_ptr(error)}), ring();
  }

  /// The next watch opens and waits for events.
  void watch_opens() { watches_to_come_.push_back({}), ring(); }
  template <class E>
  void watch_throws(E error) {
    watches_to_come_.push_back({std::make_exception_ptr(error), {}}), ring();
  }
  /// The next watch opens, and its Watcher::next() is this function.
  void watch_is(NextEvents next) { watches_to_come_.push_back({nullptr, std::move(next)}), ring(); }

  /// Sends events to the open watch, which receives the events of one call together.
  void send(std::vector<api::WatchEvent> events);
  void send(api::EventType type, api::Object object) { send({{type, std::move(object)}}); }
  void close_watch();
  template <class E>
  void break_watch(E error) {
    steps_.push_back({{}, std::make_exception_ptr(error)}), ring();
  }

  /// The requests so far.
  const std::vector<rest::ListOptions>& lists() const { return lists_; }
  const std::vector<rest::ListOptions>& watches() const { return watches_; }
  /// True if a watch is open and the reflector waits for its events.
  bool watching() const { return watching_; }
  std::size_t open_watchers() const { return open_watchers_; }

  /// Without this, the reflector lists before it watches.
  void support_watch_list() { supports_watch_list_ = true; }
  bool supports_watch_list() const override { return supports_watch_list_; }

  Awaitable<rest::ListMeta> list(OnItem on_item, rest::ListOptions options,
                                 std::stop_token stop) override;
  Awaitable<std::unique_ptr<cache::Watcher>> watch(rest::ListOptions options,
                                                   std::stop_token stop) override;

 private:
  class FakeWatcher;
  struct ListAnswer {
    Page page;
    std::exception_ptr error;
  };
  struct WatchAnswer {
    std::exception_ptr error;
    NextEvents next;
  };
  struct Step {
    std::vector<api::WatchEvent> events;  // empty: the end
    std::exception_ptr error;
  };

  void ring();
  /// Waits until `ready` holds; throws at a stop.
  template <class Ready>
  Awaitable<void> wait(const Ready& ready, std::stop_token stop);
  template <class Answer>
  Awaitable<Answer> next(std::deque<Answer>& answers, std::stop_token stop);

  std::deque<ListAnswer> lists_to_come_;
  std::deque<WatchAnswer> watches_to_come_;
  std::deque<Step> steps_;
  std::vector<rest::ListOptions> lists_;
  std::vector<rest::ListOptions> watches_;
  bool supports_watch_list_ = false;
  bool watching_ = false;
  std::size_t open_watchers_ = 0;
  std::function<void()> ring_;
};

}  // namespace lookout::test
