#include "tests/support/fake_lister_watcher.h"

#include <boost/asio/this_coro.hpp>
#include <utility>

#include "lookout/base/async_event.h"

namespace lookout::test {

class FakeListerWatcher::FakeWatcher : public cache::Watcher {
 public:
  FakeWatcher(FakeListerWatcher& source, NextEvents next, std::stop_token stop)
      : source_(source), next_(std::move(next)), stop_(std::move(stop)) {
    ++source_.open_watchers_;
  }
  ~FakeWatcher() override {
    --source_.open_watchers_;
    source_.watching_ = false;
  }

  Awaitable<bool> next(std::vector<api::WatchEvent>& events) override {
    if (next_) co_return next_(events);
    source_.watching_ = true;
    const auto ready = [this] { return !source_.steps_.empty(); };
    co_await source_.wait(ready, stop_);
    source_.watching_ = false;
    Step step = std::move(source_.steps_.front());
    source_.steps_.pop_front();
    if (step.error) std::rethrow_exception(step.error);
    events = std::move(step.events);
    co_return !events.empty();
  }

 private:
  FakeListerWatcher& source_;
  const NextEvents next_;
  const std::stop_token stop_;
};

void FakeListerWatcher::send(std::vector<api::WatchEvent> events) {
  steps_.push_back({std::move(events), nullptr});
  ring();
}
void FakeListerWatcher::close_watch() { send({}); }

void FakeListerWatcher::ring() {
  if (ring_) ring_();
}

template <class Answer>
Awaitable<Answer> FakeListerWatcher::next(std::deque<Answer>& answers, std::stop_token stop) {
  const auto ready = [&] { return !answers.empty(); };
  co_await wait(ready, stop);
  Answer out = std::move(answers.front());
  answers.pop_front();
  co_return out;
}

template <class Ready>
Awaitable<void> FakeListerWatcher::wait(const Ready& ready, std::stop_token stop) {
  AsyncEvent event(co_await boost::asio::this_coro::executor);
  ring_ = [event] { event.ring(); };
  const std::stop_callback on_stop(stop, [event] { event.ring(); });
  while (!ready() && !stop.stop_requested()) co_await event.wait();
  ring_ = nullptr;
  if (stop.stop_requested())
    throw rest::TransportError(rest::TransportError::Kind::kCancelled, "stopped");
}

Awaitable<rest::ListMeta> FakeListerWatcher::list(OnItem on_item, rest::ListOptions options,
                                                  std::stop_token stop) {
  lists_.push_back(options);
  ListAnswer answer = co_await next(lists_to_come_, std::move(stop));
  for (auto& item : answer.page.items) on_item(std::move(item));
  if (answer.error) std::rethrow_exception(answer.error);
  rest::ListMeta meta;
  meta.resource_version = answer.page.resource_version;
  meta.continue_token = answer.page.continue_token;
  meta.malformed_items = answer.page.malformed_items;
  meta.malformed_keys = answer.page.malformed_keys;
  meta.api_version = answer.page.api_version;
  meta.kind = answer.page.kind;
  co_return meta;
}

Awaitable<std::unique_ptr<cache::Watcher>> FakeListerWatcher::watch(rest::ListOptions options,
                                                                    std::stop_token stop) {
  watches_.push_back(options);
  WatchAnswer answer = co_await next(watches_to_come_, stop);
  if (answer.error) std::rethrow_exception(answer.error);
  co_return std::make_unique<FakeWatcher>(*this, std::move(answer.next), std::move(stop));
}

}  // namespace lookout::test
