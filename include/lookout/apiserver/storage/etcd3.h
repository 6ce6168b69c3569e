// A storage in etcd.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/apiserver/storage/interface.h"
#include "lookout/apiserver/storage/transformer.h"
#include "lookout/base/attributes.h"

namespace lookout::apiserver::storage {

struct EtcdOptions {
  /// The members of the cluster: "http://127.0.0.1:2379", "https://etcd-1.example:2379". One that
  /// answers is used until it does not.
  LOOKOUT_OPTION std::vector<std::string> endpoints = {};
  /// All keys begin with it.
  LOOKOUT_OPTION std::string prefix = "/registry";

  /// PEM files: who signs the members' certificates, and a client certificate. When the files of
  /// the latter change, the next request shows the new one (they are looked at once a second); the
  /// authority is read once.
  LOOKOUT_OPTION std::string ca_file = {};
  LOOKOUT_OPTION std::string cert_file = {};
  LOOKOUT_OPTION std::string key_file = {};
  /// For an etcd with authentication; empty: without.
  LOOKOUT_OPTION std::string username = {};
  LOOKOUT_OPTION std::string password = {};

  std::chrono::milliseconds dial_timeout{3000};
  /// For a request that is no watch, together with its further tries.
  std::chrono::milliseconds request_timeout{10000};

  /// How often etcd is compacted; 0: never. If several servers share one etcd, one of them does it.
  std::chrono::milliseconds compaction_interval{std::chrono::minutes(5)};

  /// Whether a cache per resource, fed by one watch, serves lists and watches. Without it, each of
  /// them goes to etcd.
  bool watch_cache = true;
  /// How many changes of a resource the cache remembers, for watchers that are behind.
  std::size_t history = 10000;
  /// How much memory that may take for each resource, and how old it may become. The latest change
  /// is always remembered.
  std::size_t history_bytes = 64u << 20;
  std::chrono::milliseconds history_age = std::chrono::minutes(10);
  /// How long a request or a watch waits for a revision that lies in the future (then 504, "Too
  /// large resource version"), and a request for the cache (then 429).
  std::chrono::milliseconds future_wait{3000};

  /// How the values of a resource (by its place: "secrets") are kept; null, also as an answer: as
  /// they are.
  LOOKOUT_OPTION std::function<std::shared_ptr<const Transformer>(std::string_view place)>
      transformer = {};

  /// Threads for the connections to etcd and for the caches. 0: as many as there are processors.
  unsigned threads = 2;
};

/// Keeps objects in etcd v3, as kube-apiserver does: the same keys, values in JSON
/// (`--storage-media-type=application/json`), revisions as resourceVersions. Any number of servers
/// may share one etcd, each reading and writing.
///
/// It speaks to etcd's JSON gateway, which every etcd from 3.4 on serves at its client address
/// (unless it was started with --enable-grpc-gateway=false).
///
/// Writes that got no answer throw StorageError (kUnreachable, kTimeout): they may have happened.
class EtcdBackend final : public Backend {
 public:
  /// Throws lookout::Error if the options make no sense; whether an etcd is there shows later.
  explicit EtcdBackend(EtcdOptions options);
  ~EtcdBackend() override;

  Interface& resource(std::string_view place, std::chrono::seconds ttl = {},
                      std::string_view group_resource = {}) override;
  void release(std::string_view place) override;
  Awaitable<Revision> current_revision() override;
  std::string_view name() const override { return "etcd"; }
  /// Waits for two seconds at most.
  Awaitable<void> check() override;
  std::string metrics() const override;
  void close() override;
  /// Forgets the past that is too old.
  void maintain() override;

  /// Tells etcd to forget what was before `revision`.
  Awaitable<void> compact(Revision revision);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::apiserver::storage
