// Compares the store with client-go's: the same objects and operations, in the order of the job "store" of
// bench/peers/client-go. bench/store_compare.sh runs both in turn.
//
//   store_compare objects COUNT    prints the objects, one JSON a line: two versions of each, one after the other
//   store_compare run FILE         does the work over the objects of that file; prints "NAME NANOSECONDS" a line
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/load/objects.h"
#include "bench/load/stamp.h"
#include "bench/run_main.h"
#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout::bench {
namespace {

using k8s::core::v1::Pod;

constexpr std::size_t kBytes = 1000;
constexpr std::size_t kGets = 200'000;
constexpr std::size_t kUpdates = 100'000;
/// The number of gets per view.
constexpr std::size_t kTogether = 100;

/// The thread's CPU time, which is more stable than elapsed time on a busy machine.
double thread_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// The average cost of one of `times` calls.
template <class Call>
double each(std::size_t times, Call call) {
  const double begin = thread_nanoseconds();
  for (std::size_t i = 0; i < times; ++i) call(i);
  return (thread_nanoseconds() - begin) / static_cast<double>(times);
}

void report(std::string_view name, double nanoseconds) {
  fmt::print("{} {:.1f}\n", name, nanoseconds);
}

void print_objects(std::size_t count) {
  std::vector<Stamp> stamps;
  for (std::size_t i = 0; i < kVariants; ++i)
    stamps.emplace_back(object_type("pods")->json(i, kBytes));
  std::string line;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t version = 1; version <= 2; ++version) {
      line.clear();
      stamps[i % kVariants].append(line, {.number = i, .version = i + version, .ns = i % 100});
      fmt::print("{}\n", line);
    }
  }
}

/// Two versions of each object. Consecutive accesses are not adjacent in memory.
struct Objects {
  std::vector<api::Object> versions[2];

  explicit Objects(const char* file) {
    std::ifstream in(file);
    api::JsonDecoder decoder;
    std::string line;
    for (std::size_t i = 0; std::getline(in, line); ++i) {
      versions[i % 2].push_back(decoder.decode(line));
      if (!versions[i % 2].back()) throw api::DecodeError(decoder.error());
    }
    if (versions[0].empty() || versions[0].size() != versions[1].size())
      throw Error("the file has no objects, or half of one");
  }
  std::size_t size() const { return versions[0].size(); }
  std::size_t some(std::size_t i) const { return i * 7919 % size(); }
  /// Each object once in one version, then once in the other.
  const api::Object& change(std::size_t i) const { return versions[(i / size() + 1) % 2][some(i)]; }
};

const Pod& as_pod(const api::Object& object) { return static_cast<const Pod&>(object); }

/// The first `count` of five indexes.
cache::Indexers indexers(std::size_t count) {
  const std::vector<cache::Indexers::value_type> all = {
      {std::string(cache::kNamespaceIndex), cache::index_by_namespace},
      {"node", [](const api::Object& object,
                  cache::IndexValues& values) { values.add(as_pod(object).spec().node_name()); }},
      {"app", [](const api::Object& object,
                 cache::IndexValues& values) { values.add(object.labels()["app"].as_string()); }},
      {"phase", [](const api::Object& object,
                   cache::IndexValues& values) { values.add(as_pod(object).status().phase()); }},
      {"ip", [](const api::Object& object,
                cache::IndexValues& values) { values.add(as_pod(object).status().pod_ip()); }},
  };
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

struct Key {
  std::string ns;
  std::string name;
};

class Comparison {
 public:
  explicit Comparison(const Objects& objects) : objects_(objects), store_(indexers(2)) {
    for (const auto& object : objects_.versions[0])
      keys_.push_back({std::string(object.ns()), std::string(object.name())});
    store_.replace(objects_.versions[0], "1");
  }

  void run() {
    report("get", get(0));
    report("view_get", view_get(0));
    report("many_get", many_get(0));
    for (const std::size_t readers : {1u, 2u, 8u}) beside_writer(readers);
    report("iterate", each(5, [&](std::size_t) {
                        for (const auto& object : store_.snapshot()) touch(object);
                      }) / static_cast<double>(objects_.size()));
    const auto nodes = store_.index_values("node");
    report("by_index", each(2000, [&](std::size_t i) {
             const auto now = store_.snapshot();
             for (const auto& object : now.by_index("node", nodes[i * 7919 % nodes.size()]))
               touch(object);
           }));
    for (const std::size_t count : {0u, 2u, 5u}) {
      cache::Indexer store(indexers(count));
      store.replace(objects_.versions[0], "1");
      report(fmt::format("update_{}", count),
             each(kUpdates, [&](std::size_t i) { store.update(objects_.change(i)); }));
    }
    if (touched_ == 0) throw Error("nothing was read");
  }

 private:
  void touch(const api::Object& object) {
    touched_.store(touched_.load(std::memory_order_relaxed) + object.name().size(),
                   std::memory_order_relaxed);
  }

  double get(std::size_t first) const {
    std::size_t sum = 0;
    const double took = each(kGets, [&](std::size_t i) {
      const Key& key = keys_[objects_.some(first + i)];
      const Pod pod(store_.get(key.ns, key.name));
      sum += pod.spec().node_name().size();
    });
    if (sum == 0) throw Error("nothing was found");
    return took;
  }

  double view_get(std::size_t first) const {
    std::size_t sum = 0;
    const double took = each(kGets / kTogether, [&](std::size_t batch) {
      const auto view = store_.read();
      for (std::size_t i = batch * kTogether; i < (batch + 1) * kTogether; ++i) {
        const Key& key = keys_[objects_.some(first + i)];
        sum += as_pod(*view.get(key.ns, key.name)).spec().node_name().size();
      }
    });
    if (sum == 0) throw Error("nothing was found");
    return took / kTogether;
  }

  double many_get(std::size_t first) const {
    std::size_t sum = 0;
    std::vector<cache::ObjectName> keys(kTogether);
    const double took = each(kGets / kTogether, [&](std::size_t batch) {
      for (std::size_t i = 0; i < kTogether; ++i) {
        const Key& key = keys_[objects_.some(first + batch * kTogether + i)];
        keys[i] = {key.ns, key.name};
      }
      const auto view = store_.read();
      for (const Pod& pod : view.get_many<Pod>(keys)) sum += pod.spec().node_name().size();
    });
    if (sum == 0) throw Error("nothing was found");
    return took / kTogether;
  }

  void beside_writer(std::size_t readers) {
    std::atomic<bool> done{false};
    std::thread writer([&] {
      for (std::size_t i = 0; !done.load(std::memory_order_relaxed); ++i)
        store_.update(objects_.change(i));
    });
    std::vector<double> took(readers);
    std::vector<double> view_took(readers);
    std::vector<double> many_took(readers);
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < readers; ++r) {
      threads.emplace_back([&, r] {
        took[r] = get(r * 1000);
        view_took[r] = view_get(r * 1000);
        many_took[r] = many_get(r * 1000);
      });
    }
    for (auto& thread : threads) thread.join();
    done = true;
    writer.join();
    const auto average = [&](const std::vector<double>& all) {
      double sum = 0;
      for (const double one : all) sum += one;
      return sum / static_cast<double>(all.size());
    };
    report(fmt::format("get_beside_writer_{}", readers), average(took));
    report(fmt::format("view_get_beside_writer_{}", readers), average(view_took));
    report(fmt::format("many_get_beside_writer_{}", readers), average(many_took));
  }

  const Objects& objects_;
  std::vector<Key> keys_;
  cache::Indexer store_;
  std::atomic<std::size_t> touched_{0};
};

int run(int argc, char** argv) {
  const std::string_view job = argc > 2 ? argv[1] : "";
  if (job == "objects") {
    print_objects(std::strtoull(argv[2], nullptr, 10));
    return 0;
  }
  if (job == "run") {
    Comparison(Objects(argv[2])).run();
    return 0;
  }
  fmt::print(stderr, "usage: store_compare objects COUNT|run FILE\n");
  return 2;
}

}  // namespace
}  // namespace lookout::bench

int main(int argc, char** argv) {
  return lookout::bench::run_main("store_compare", [&] { return lookout::bench::run(argc, argv); });
}
