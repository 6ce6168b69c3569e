// A controller: each event of a pod adds its key to a work queue; workers reconcile the keys, and
// retry failures later. It ends immediately on SIGTERM, even if the server hangs.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "lookout/informer/enqueue.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/lookout.h"
#include "lookout/tools/workqueue/rate_limiting_queue.h"

using namespace lookout;

namespace {

class Controller {
 public:
  explicit Controller(rest::Client client)
      : client_(std::move(client)),
        queue_({.loop = client_.shared_loop()}),
        factory_(client_, {.ns = "default"}) {
    // When a key is processed, the store may already have a newer version of the pod.
    handler_ = pods_.add_handler(informer::enqueue<k8s::core::v1::Pod>(queue_));
    // The pod may have existed when this program last ran, and may have been deleted since:
    // reconcile its key.
    queue_.add("default/mypod");
  }

  void run(unsigned workers, const std::stop_token& stop) {
    factory_.start();
    const auto synced = factory_.wait_for_cache_sync(stop);
    if (stop.stop_requested()) return;
    if (!synced) throw Error(synced.message());
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < workers; ++i) threads.emplace_back([&] { work(stop); });
  }

 private:
  void work(const std::stop_token& stop) {
    // A leader that has been asked to stop must not write, because another one may lead by now.
    const rest::Client client = client_.with({.stop = stop, .timeout = std::chrono::seconds(10)});
    // Only one worker at a time processes a key; the destructor of `key` ends its processing.
    while (const auto key = queue_.next(stop)) {
      try {
        sync(client, **key);
        queue_.forget(**key);
      } catch (const std::exception& e) {
        if (stop.stop_requested()) return;
        // Retries with growing delays, but never gives up: nothing else reconciles this key.
        fmt::print(stderr, "{}: {}; will retry\n", **key, e.what());
        queue_.add_rate_limited(**key);
      }
    }
  }

  /// The program's work: prints a line for each pod, and greets pods that request it.
  /// throws if something is wrong.
  void sync(const rest::Client& client, const std::string& key) {
    const auto [ns, name] = cache::split_meta_namespace_key(key);
    if (const auto pod = pods_.lister().ns(ns).find(name)) {
      fmt::print("Sync/Add/Update for pod {}\n", pod.name());
      const auto annotations = pod.metadata().annotations();
      if (annotations.contains("example.com/greet") &&
          !annotations.contains("example.com/greeted")) {
        const auto change = pod.edit();
        change.metadata().annotations().set("example.com/greeted", "yes");
        client.resource<k8s::core::v1::Pod>(ns).patch(change);
      }
    } else {
      fmt::print("Pod {} does not exist anymore\n", key);
    }
  }

  const rest::Client client_;
  workqueue::RateLimitingQueue<std::string> queue_;
  informer::SharedInformerFactory factory_;
  informer::SharedInformer<k8s::core::v1::Pod> pods_ = factory_.informer<k8s::core::v1::Pod>();
  informer::HandlerRegistration handler_;  // removed with the controller
};

}  // namespace

int main() try {
  // Blocked before any thread starts, so that only sigwait() receives the signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  Controller controller{rest::Client{rest::Config::load()}};
  const std::jthread running([&](const std::stop_token& stop) { controller.run(1, stop); });
  int signal = 0;
  sigwait(&signals, &signal);
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
