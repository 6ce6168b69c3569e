#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "bench/load/objects.h"
#include "bench/load/stamp.h"
#include "cmd/bench/jobs.h"
#include "cmd/bench/usage.h"
#include "lookout/api/json.h"
#include "lookout/base/pinned.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/lister/lister.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout::cmd::bench {
namespace {

namespace load = lookout::bench;
using Steady = std::chrono::steady_clock;

double nanoseconds(Steady::duration duration) {
  return std::chrono::duration<double, std::nano>(duration).count();
}

/// Processor time of this thread: unlike wall time, it is meaningful on a busy machine.
double thread_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// The time in nanoseconds during which this thread was ready to run but other processes ran: an effect
/// of the machine's load, not of the program.
class ReadyTime : public base::Pinned {
 public:
  ReadyTime() : fd_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  ~ReadyTime() {
    if (fd_ >= 0) close(fd_);
  }

  /// 0 if the kernel does not provide it.
  double now() const {
    char text[64] = {};
    if (fd_ < 0 || pread(fd_, text, sizeof text - 1, 0) <= 0) return 0;
    const char* space = std::strchr(text, ' ');
    return space == nullptr ? 0 : std::strtod(space, nullptr);
  }

 private:
  int fd_;
};

/// The average cost of one of `times` calls of `call`.
template <class Call>
double each(std::size_t times, Call call) {
  const double begin = thread_nanoseconds();
  for (std::size_t i = 0; i < times; ++i) call(i);
  return (thread_nanoseconds() - begin) / static_cast<double>(times);
}

void report_percentiles(const std::string& name, std::vector<double>& all, Result& result) {
  std::sort(all.begin(), all.end());
  const auto at = [&](double part) {
    return all[static_cast<std::size_t>(static_cast<double>(all.size() - 1) * part)];
  };
  result.set(name + "_p50_ns", at(0.5));
  result.set(name + "_p99_ns", at(0.99));
  result.set(name + "_p999_ns", at(0.999));
  result.set(name + "_p9999_ns", at(0.9999));
  result.set(name + "_max_ns", at(1));
}

}  // namespace

Result store_job(const JobOptions& options, std::stop_token stop) {
  const std::size_t count = options.objects;
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
  const lister::Lister<k8s::core::v1::Pod> lister(store,
                                                  api::Resource(k8s::core::v1::Pod::kResource));
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

  // The wall time of an update, alone and with concurrent full lists, and without the time in which the
  // machine ran other processes.
  const auto time_updates = [&](const std::string& name) {
    std::vector<double> took;
    std::vector<double> undisturbed;
    took.reserve(times);
    undisturbed.reserve(times);
    const ReadyTime ready;
    double ready_before = ready.now();
    for (std::size_t i = 0; i < times; ++i) {
      const auto before = Steady::now();
      store->update(some(i));
      took.push_back(nanoseconds(Steady::now() - before));
      const double ready_after = ready.now();
      undisturbed.push_back(std::max(0.0, took.back() - (ready_after - ready_before)));
      ready_before = ready_after;
    }
    report_percentiles(name, took, result);
    report_percentiles(name + "_undisturbed", undisturbed, result);
  };
  time_updates("update_alone");
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::size_t seen = 0;
    while (!done.load(std::memory_order_relaxed)) {
      for (const auto& pod : lister.list()) seen += pod ? 1u : 0u;
    }
    found += seen;
  });
  time_updates("update_beside_list");
  done = true;
  reader.join();
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
