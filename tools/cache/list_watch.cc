#include <chrono>
#include <utility>

#include "lookout/tools/cache/lister_watcher.h"

namespace lookout::cache {
namespace {

// A server ends a list after a minute (kube-apiserver --request-timeout); a large one may need it.
constexpr std::chrono::minutes kListTimeout{2};

class StreamWatcher : public Watcher {
 public:
  explicit StreamWatcher(rest::WatchStream stream) : stream_(std::move(stream)) {}
  Awaitable<bool> next(std::vector<api::WatchEvent>& events) override {
    return stream_.async_next(events);
  }

 private:
  rest::WatchStream stream_;
};

}  // namespace

Awaitable<void> Watcher::end() { co_return; }

ListWatch::ListWatch(rest::ResourceClient client, ListWatchOptions options)
    : client_(std::move(client)), options_(std::move(options)) {}

void ListWatch::complete(rest::ListOptions& options) const {
  options.label_selector = options_.label_selector;
  options.field_selector = options_.field_selector;
  if (options_.tweak) options_.tweak(options);
}

Awaitable<rest::ListMeta> ListWatch::list(OnItem on_item, rest::ListOptions options,
                                          std::stop_token stop) {
  complete(options);
  rest::CallOptions call;
  call.stop = std::move(stop);
  call.timeout = kListTimeout;
  return client_.async_list_each(std::move(on_item), std::move(options), options_.decode,
                                 std::move(call));
}

Awaitable<std::unique_ptr<Watcher>> ListWatch::watch(rest::ListOptions options,
                                                     std::stop_token stop) {
  complete(options);
  rest::CallOptions call;
  call.stop = std::move(stop);
  rest::WatchStream stream =
      co_await client_.async_watch(std::move(options), options_.decode, std::move(call));
  co_return std::make_unique<StreamWatcher>(std::move(stream));
}

}  // namespace lookout::cache
