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
  /// None: an etcd is started.
  std::vector<std::string> etcd_endpoints = {};
};

/// Throws what the client throws if the server does not list the objects. (Informers try again for
/// ever.)
void check_server(const JobOptions& options);

/// How few objects store_job() can measure with.
inline constexpr std::int64_t kFewestStored = 100;

/// Throws lookout::Error for a name that is none of those above.
api::Projection projection_for(const std::string& keep);

/// An informer with one handler, from nothing until the handler has been told of everything.
Result sync_job(const JobOptions& options, std::stop_token stop);
/// The same informer, and then `events` changes: how many a second, how long each takes from the
/// server's sending to the handler.
Result events_job(const JobOptions& options, std::stop_token stop);
/// Many informers, each of a namespace of its own, until all have synced.
Result informers_job(const JobOptions& options, std::stop_token stop);
/// One informer for a long time: a line with memory and processor time every ten seconds goes to
/// standard error.
Result soak_job(const JobOptions& options, std::stop_token stop);
/// The store alone: `objects` small objects, then updates, look-ups and lists, with and without an
/// index.
Result store_job(const JobOptions& options, std::stop_token stop);
/// A `lookout serve --storage etcd` in a process of its own: `watchers` of one resource over HTTP,
/// while `writers` connections replace its objects at a rate. How long each change takes from the
/// sending of the write to each watcher, and what the server needs for it.
Result storage_job(const JobOptions& options, std::stop_token stop);
/// A controller over `objects` config maps of a `lookout serve` in a process of its own: reconciles
/// a second that do nothing, as a function and as a coroutine, and that patch their object; how
/// long each change takes to its reconcile, at `rate`; as many coroutines waiting as there are
/// objects.
Result controller_job(const JobOptions& options, std::stop_token stop);

}  // namespace lookout::cmd::bench
