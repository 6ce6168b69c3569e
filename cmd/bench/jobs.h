// The measurements of `lookout bench`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "cmd/bench/result.h"
#include "lookout/api/projection.h"
#include "lookout/rest/config.h"

namespace lookout::cmd::bench {

struct JobOptions {
  rest::Config config;
  std::string resource = "pods";
  /// "list" or "watchlist"
  std::string mode = "watchlist";
  /// "all", "unmanaged" (without managedFields) or "registry" (what a service registry needs)
  std::string keep = "all";
  std::uint64_t events = 0;
  std::size_t informers = 1000;
  std::size_t objects = 100'000;
  std::chrono::milliseconds duration{0};
  // For storage_job and controller_job.
  std::size_t watchers = 200;
  std::size_t writers = 32;
  std::uint64_t rate = 2000;
  std::size_t object_bytes = 1000;
  std::chrono::milliseconds load_time{20000};
  /// Empty: starts an etcd.
  std::vector<std::string> etcd_endpoints = {};
};

/// Throws what the client throws if the server does not list the objects. (Informers would retry
/// forever.)
void check_server(const JobOptions& options);

/// The minimum number of objects for store_job().
inline constexpr std::int64_t kFewestStored = 100;

/// Throws lookout::Error for a name that is not one of JobOptions::keep.
api::Projection projection_for(const std::string& keep);

/// An informer with one handler, from the start until the handler has received all objects.
Result sync_job(const JobOptions& options, std::stop_token stop);
/// The same informer, followed by `events` changes: throughput, and latency from the server to the
/// handler.
Result events_job(const JobOptions& options, std::stop_token stop);
/// Many informers, each for its own namespace, until all are synced.
Result informers_job(const JobOptions& options, std::stop_token stop);
/// One informer for a long time. Prints memory and processor time to standard error every ten seconds.
Result soak_job(const JobOptions& options, std::stop_token stop);
/// The store alone: `objects` small objects, then updates, lookups and lists, with and without an
/// index.
Result store_job(const JobOptions& options, std::stop_token stop);
/// A `lookout serve --storage etcd` in its own process, with `watchers` of one resource over HTTP and
/// `writers` connections that replace its objects at a rate. Measures the time from sending a write to
/// each watcher, and the server's resource usage.
Result storage_job(const JobOptions& options, std::stop_token stop);
/// A controller for `objects` config maps of a `lookout serve` in its own process: no-op reconciles per
/// second, as a function and as a coroutine; reconciles that patch their object; the latency of changes
/// at `rate`; and one waiting coroutine per object.
Result controller_job(const JobOptions& options, std::stop_token stop);

}  // namespace lookout::cmd::bench
