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

namespace lookout::apiserver::storage {

struct EtcdOptions {
  /// The members of the cluster: "http://127.0.0.1:2379", "https://etcd-1.example:2379". One that
  /// answers is used until it does not.
  std::vector<std::string> endpoints = {};
  /// What all keys begin with.
  std::string prefix = "/registry";

  /// PEM files: who signs the members' certificates, and a client certificate. When the files of
  /// the latter change, the next request shows the new one (they are looked at once a second); the
  /// authority is read once.
  std::string ca_file = {};
  std::string cert_file = {};
  std::string key_file = {};
  /// For an etcd with authentication; empty: without.
  std::string username = {};
  std::string password = {};

  std::chrono::milliseconds dial_timeout{3000};
  /// For a request that is no watch, together with its further tries.
  std::chrono::milliseconds request_timeout{10000};

  /// How often etcd is told to forget the past; 0: never. Of many servers on one etcd, one does it.
  std::chrono::milliseconds compaction_interval{std::chrono::minutes(5)};

  /// Whether a cache per resource, fed by one watch, serves lists and watches. Without it, each of
  /// them goes to etcd.
  bool watch_cache = true;
  /// How many changes of a resource the cache remembers, for watchers that are behind.
  std::size_t history = 10000;
  /// How long a request waits for a revision that lies in the future, or for the cache.
  std::chrono::milliseconds future_wait{3000};

  /// How the values of a resource (by its place: "secrets") are kept; null, also as an answer: as
  /// they are.
  std::function<std::shared_ptr<const Transformer>(std::string_view place)> transformer = {};

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
  Awaitable<Revision> current_revision() override;
  std::string_view name() const override { return "etcd"; }
  /// Waits for two seconds at most.
  Awaitable<void> check() override;
  std::string metrics() const override;
  void close() override;

  /// Tells etcd to forget what was before `revision`.
  Awaitable<void> compact(Revision revision);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::apiserver::storage
