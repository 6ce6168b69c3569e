// The jobs whose instructions bench/guard.sh counts. Each runs once with a small fixed input. "heap"
// prints the bytes that objects occupy.
#include <fmt/format.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/load/objects.h"
#include "informer/listener.h"
#include "lookout/api/detail/object_header.h"
#include "lookout/api/json.h"
#include "lookout/api/labels.h"
#include "lookout/api/protobuf.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/lister/lister.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout::bench {
namespace {

constexpr std::size_t kPods = 200;
constexpr std::size_t kStored = 5000;
constexpr std::size_t kNotifications = 10'000;

std::string pod_json(std::size_t number) {
  return object_json(*object_type("pods"), number, number % 2 == 0 ? 6200 : 1000);
}

std::vector<api::Object> small_pods() {
  std::vector<api::Object> out;
  for (std::size_t i = 0; i < kStored; ++i)
    out.push_back(api::Object::parse(object_json(*object_type("pods"), i, 1000)));
  return out;
}

std::shared_ptr<cache::Indexer> filled_store() {
  auto store = std::make_shared<cache::Indexer>(
      cache::Indexers{{std::string(cache::kNamespaceIndex), cache::index_by_namespace}});
  store->replace(small_pods(), "1");
  return store;
}

/// Callgrind counts only inside this function.
[[gnu::noinline]] void measured(const std::function<void()>& work) { work(); }

std::size_t decode() {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < kPods; ++i) texts.push_back(pod_json(i));
  api::JsonDecoder decoder;
  std::vector<api::Object> kept(kPods);
  measured([&] {
    for (std::size_t i = 0; i < kPods; ++i) kept[i] = decoder.decode(texts[i]);
  });
  return kept.back() ? kPods : 0;
}

std::size_t decode_list() {
  std::string body = R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":[)";
  for (std::size_t i = 0; i < kPods; ++i) body += (i == 0 ? "" : ",") + pod_json(i);
  body += "]}";
  std::vector<api::Object> kept;
  kept.reserve(kPods);
  api::JsonListDecoder decoder(
      {}, [&](api::Object item) { kept.push_back(std::move(item)); },
      [](const api::MalformedObject&) {});
  measured([&] {
    for (std::size_t at = 0; at < body.size(); at += 16384)
      decoder.feed(std::string_view(body).substr(at, 16384));
  });
  return kept.size();
}

/// The same pods in their envelopes, as in a watch.
std::vector<std::string> protobuf_pods() {
  api::ProtobufEncoder encoder;
  std::vector<std::string> out(kPods);
  for (std::size_t i = 0; i < kPods; ++i) {
    if (!encoder.encode(api::Object::parse(pod_json(i)), out[i])) out.clear();
  }
  return out;
}

std::size_t decode_protobuf(api::Projection projection) {
  const std::vector<std::string> pods = protobuf_pods();
  api::ProtobufDecoder decoder(std::move(projection));
  std::vector<api::Object> kept(kPods);
  measured([&] {
    for (std::size_t i = 0; i < kPods; ++i) kept[i] = decoder.decode(pods[i]);
  });
  return kept.back() ? kPods : 0;
}

std::size_t decode_protobuf() { return decode_protobuf({}); }
std::size_t decode_protobuf_unmanaged() {
  return decode_protobuf(api::Projection::without_managed_fields());
}

std::size_t encode_protobuf() {
  std::vector<api::Object> pods;
  for (std::size_t i = 0; i < kPods; ++i) pods.push_back(api::Object::parse(pod_json(i)));
  api::ProtobufEncoder encoder;
  std::string out;
  bool fine = true;
  measured([&] {
    for (const auto& pod : pods) {
      out.clear();
      fine = encoder.encode(pod, out) && fine;
    }
  });
  return fine ? kPods : 0;
}

std::size_t store_update() {
  const auto store = filled_store();
  const auto pods = small_pods();
  measured([&] {
    for (const auto& pod : pods) store->update(pod);
  });
  return kStored;
}

std::size_t list() {
  const auto store = filled_store();
  const lister::Lister<k8s::core::v1::Pod> lister(store,
                                                  api::Resource(k8s::core::v1::Pod::kResource));
  const auto selector = api::labels::parse("app in (search,mail),!canary");
  std::size_t found = 0;
  measured([&] { found = lister.list(selector).size(); });
  return found > 0 ? kStored : 0;
}

/// Reads a dozen typical fields of each pod.
std::size_t read_fields() {
  std::vector<k8s::core::v1::Pod> pods;
  for (std::size_t i = 0; i < kPods; ++i) pods.emplace_back(api::Object::parse(pod_json(i)));
  std::size_t read = 0;
  measured([&] {
    for (const auto& pod : pods) {
      const auto metadata = pod.metadata();
      read += metadata.name().size() + metadata.namespace_().size();
      read += metadata.labels().as_value().exists() ? 1u : 0u;
      read += metadata.owner_references().empty() ? 1u : 0u;
      const auto spec = pod.spec();
      read += spec.node_name().size() + spec.hostname().size() + spec.scheduler_name().size();
      for (const auto container : spec.containers()) read += container.image().size();
      const auto status = pod.status();
      read += status.phase().size() + status.pod_ip().size();
      for (const auto condition : status.conditions())
        read += condition.type() == "Ready" && condition.status() == "True" ? 1u : 0u;
    }
  });
  return read > 0 ? kPods : 0;
}

/// Counts push() and drain() of the queue on all threads.
std::size_t notification() {
  const auto loop = std::make_shared<EventLoop>(1);
  const auto pool = std::make_shared<informer::HandlerPool>(loop);
  std::atomic<std::size_t> handled{0};
  informer::EventHandler<api::Object> handler;
  handler.on_update = [&](const api::Object&, const api::Object&) {
    if (handled.fetch_add(1) + 1 == kNotifications) handled.notify_one();
  };
  const auto listener = std::make_shared<informer::detail::Listener>(
      handler, pool, loop, std::chrono::milliseconds(0), false);
  const api::Object pod = api::Object::parse(pod_json(1));
  std::vector<cache::Notification> notifications(kNotifications);
  for (auto& notification : notifications) {
    notification.type = cache::Notification::Type::kUpdate;
    notification.object = notification.before = pod;
  }
  // (A single call: counting would stop in nested calls of the same name.)
  listener->push(
      std::make_shared<const std::vector<cache::Notification>>(std::move(notifications)));
  for (std::size_t n = handled; n != kNotifications; n = handled) handled.wait(n);
  listener->wait_delivered();
  listener->close();
  return kNotifications;
}

/// The number of bytes in use in the allocator.
std::size_t heap() { return mallinfo2().uordblks; }

void print_heap() {
  std::vector<api::Object> pods;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kPods; ++i) {
    pods.push_back(api::Object::parse(object_json(*object_type("pods"), i, 6200)));
    // (The allocator treats it like other memory.)
    bytes += malloc_usable_size(const_cast<api::detail::ObjectHeader*>(pods.back().header()));
  }
  fmt::print("object_heap_bytes {}\n", bytes / kPods);

  const auto stored = small_pods();
  const std::size_t without_store = heap();
  auto store = std::make_shared<cache::Indexer>(
      cache::Indexers{{std::string(cache::kNamespaceIndex), cache::index_by_namespace}});
  store->replace(stored, "1");
  fmt::print("store_heap_bytes {}\n", (heap() - without_store) / kStored);
}

}  // namespace
}  // namespace lookout::bench

int main(int argc, char** argv) {
  using namespace lookout::bench;
  const std::string_view job = argc > 1 ? argv[1] : "";
  if (job == "heap") {
    print_heap();
    return 0;
  }
  const std::pair<std::string_view, std::size_t (*)()> jobs[] = {
      {"decode", decode},
      {"decode_list", decode_list},
      {"decode_protobuf", decode_protobuf},
      {"decode_protobuf_unmanaged", decode_protobuf_unmanaged},
      {"encode_protobuf", encode_protobuf},
      {"read_fields", read_fields},
      {"store_update", store_update},
      {"list", list},
      {"notification", notification},
  };
  for (const auto& [name, run] : jobs) {
    if (job != name) continue;
    const std::size_t items = run();
    fmt::print("{}\n", items);
    return items > 0 ? 0 : 1;
  }
  fmt::print(stderr, "usage: lookout_guard heap");
  for (const auto& one : jobs) fmt::print(stderr, "|{}", one.first);
  fmt::print(stderr, "\n");
  return 2;
}
