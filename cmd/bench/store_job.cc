#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "bench/load/objects.h"
#include "bench/load/stamp.h"
#include "cmd/bench/jobs.h"
#include "cmd/bench/usage.h"
#include "lookout/api/core/v1.h"
#include "lookout/api/json.h"
#include "lookout/lister/lister.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout::cmd::bench {
namespace {

namespace load = lookout::bench;
using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::nano>(duration).count();
}

/// Processor time of this thread: unlike the time of day it says what the work costs even if the
/// machine has other things to do.
double thread_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// What `call` costs, each of `times`.
template <class Call>
double each(std::size_t times, Call call) {
  const double begin = thread_nanoseconds();
  for (std::size_t i = 0; i < times; ++i) call(i);
  return (thread_nanoseconds() - begin) / static_cast<double>(times);
}

}  // namespace

Result store_job(const JobOptions& options, std::stop_token stop) {
  const std::size_t count = std::max<std::size_t>(options.objects, 100);
  const load::ObjectType& pods = *load::object_type("pods");
  const std::int64_t memory_before = process_status("RssAnon");
  std::vector<api::Object> objects;
  objects.reserve(count);
  {
    std::vector<load::Stamp> stamps;
    for (std::size_t i = 0; i < load::kVariants; ++i) stamps.emplace_back(pods.json(i, 1000));
    api::JsonDecoder decoder;
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      text.clear();
      stamps[i % stamps.size()].append(text, {.number = i, .version = i + 1, .ns = i % 100});
      objects.push_back(decoder.decode(text));
      if (stop.stop_requested()) throw Error("stopped");
    }
  }
  const std::int64_t memory_decoded = process_status("RssAnon");

  const auto store = std::make_shared<cache::Indexer>(
      cache::Indexers{{std::string(cache::kNamespaceIndex), cache::index_by_namespace},
                      {"app", [](const api::Object& object, cache::IndexValues& values) {
                         values.add(object.labels()["app"].as_string());
                       }}});
  Result result;
  result.set("job", "store");
  result.set("client", "lookout");
  result.set("objects", static_cast<std::int64_t>(count));
  const Usage begin = Usage::now();
  result.set("replace_ns", each(1, [&](std::size_t) { store->replace(objects, "1"); }) /
                               static_cast<double>(count));
  const auto some = [&](std::size_t i) -> const api::Object& { return objects[i * 7919 % count]; };
  const std::size_t times = std::min<std::size_t>(count * 2, 200'000);
  result.set("update_ns", each(times, [&](std::size_t i) { store->update(some(i)); }));
  std::size_t found = 0;
  result.set("get_ns", each(times, [&](std::size_t i) {
               found += store->get(some(i).ns(), some(i).name()) ? 1u : 0u;
             }));
  result.set("snapshot_ns", each(times, [&](std::size_t) { found += store->snapshot().size(); }));
  const lister::Lister<core::v1::Pod> lister(store, api::Resource(core::v1::Pod::kResource));
  const auto selector = api::labels::parse("app=search");
  result.set("list_all_us", each(5, [&](std::size_t) {
                              for (const auto& pod : lister.list()) found += pod ? 1u : 0u;
                            }) / 1000);
  result.set("list_by_selector_us",
             each(5, [&](std::size_t) { found += lister.list(selector).size(); }) / 1000);
  result.set("list_by_index_us", each(5, [&](std::size_t) {
                                   for (const auto& pod : lister.by_index("app", "search"))
                                     found += pod ? 1u : 0u;
                                 }) / 1000);

  // A full list goes on beside the writer: how long does an update take now, by the clock on the
  // wall? (The worst ones are those during which the machine did something else.)
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::size_t seen = 0;
    while (!done.load(std::memory_order_relaxed)) {
      for (const auto& pod : lister.list()) seen += pod ? 1u : 0u;
    }
    found += seen;
  });
  std::vector<double> updates;
  updates.reserve(times);
  for (std::size_t i = 0; i < times; ++i) {
    const auto before = Clock::now();
    store->update(some(i));
    updates.push_back(nanoseconds(Clock::now() - before));
  }
  done = true;
  reader.join();
  std::sort(updates.begin(), updates.end());
  result.set("update_beside_list_p50_ns", updates[updates.size() / 2]);
  result.set("update_beside_list_p99_ns", updates[updates.size() * 99 / 100]);
  result.set("update_beside_list_p999_ns", updates[updates.size() * 999 / 1000]);
  result.set("update_beside_list_max_ns", updates.back());
  if (found == 0) throw Error("the store is empty");

  Usage::now().report_since(begin, result);
  const auto per_object = [&](std::int64_t bytes) {
    return bytes / static_cast<std::int64_t>(count);
  };
  result.set("object_bytes", per_object(memory_decoded - memory_before));
  result.set("store_bytes", per_object(process_status("RssAnon") - memory_decoded));
  return result;
}

}  // namespace lookout::cmd::bench
