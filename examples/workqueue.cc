// A controller: whatever happens to a pod puts its key into a work queue; workers bring each key in
// order, and try again later what fails.
#include <fmt/format.h>

#include <thread>

#include "lookout/api/core/v1.h"
#include "lookout/lookout.h"
#include "lookout/tools/workqueue/rate_limiting_queue.h"

using namespace lookout;

namespace {

class Controller {
 public:
  explicit Controller(const rest::Client& client)
      : queue_({.loop = client.shared_loop()}), factory_(client, {.ns = "default"}) {
    // When a key comes to its turn, the store may already hold a newer pod than the one that put it
    // there.
    pods_.add_handler({
        .on_add = [this](const core::v1::Pod& p, bool) { queue_.add(p.key()); },
        .on_update = [this](const auto&, const core::v1::Pod& p) { queue_.add(p.key()); },
        .on_delete = [this](const core::v1::Pod& p, bool) { queue_.add(p.key()); },
    });
    // Suppose we knew of this pod when we last ran: if it is gone, we want to know.
    queue_.add("default/mypod");
  }

  void run(unsigned workers, const std::stop_token& stop) {
    factory_.start();
    if (const auto synced = factory_.wait_for_cache_sync(stop); !synced)
      throw Error(synced.message());
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < workers; ++i) threads.emplace_back([&] { work(stop); });
  }

 private:
  void work(const std::stop_token& stop) {
    // A key is never given to two workers at a time; it gives itself back when `key` goes.
    while (const auto key = queue_.next(stop)) {
      try {
        sync(**key);
        queue_.forget(**key);
      } catch (const std::exception& e) {
        const bool again = queue_.num_requeues(**key) < 5;
        fmt::print(stderr, "{}: {}; {}\n", **key, e.what(), again ? "will retry" : "gave up");
        again ? queue_.add_rate_limited(**key) : queue_.forget(**key);
      }
    }
  }

  /// The business: here, a line for each pod. It throws if something is wrong.
  void sync(const std::string& key) {
    const auto [ns, name] = cache::split_meta_namespace_key(key);
    if (const auto pod = pods_.lister().ns(std::string(ns)).find(name)) {
      fmt::print("Sync/Add/Update for pod {}\n", pod.name());
    } else {
      fmt::print("Pod {} does not exist anymore\n", key);
    }
  }

  workqueue::RateLimitingQueue<std::string> queue_;  // goes after those who add to it
  informer::SharedInformerFactory factory_;
  informer::SharedInformer<core::v1::Pod> pods_ = factory_.informer<core::v1::Pod>();
};

}  // namespace

int main() try {
  const rest::Client client{rest::Config::load()};
  Controller controller{client};
  const std::jthread running([&](const std::stop_token& stop) { controller.run(1, stop); });
  fmt::print("Press Enter to end.\n");
  getchar();
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
