// EtcdBackend: a storage in etcd.
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

namespace lookout::apiserver::grpc {
class CarrierFactory;
}

namespace lookout::apiserver::storage {

struct EtcdOptions {
  /// The members of the cluster: "http://127.0.0.1:2379", "https://etcd-1.example:2379". The
  /// backend uses one member until it stops responding.
  LOOKOUT_OPTION std::vector<std::string> endpoints = {};
  /// The prefix of all keys.
  LOOKOUT_OPTION std::string prefix = "/registry";

  /// How often the endpoints are replaced with the client URLs of the cluster's member list, for
  /// the first time immediately; 0: never (clientv3's AutoSyncInterval). Use it only if the
  /// advertised URLs can be reached from here.
  std::chrono::milliseconds sync_interval{0};

  /// PEM files: the CA of the members' certificates, and a client certificate. After a change, new
  /// requests use the new files (they are checked once a second), while watches continue with the
  /// old ones. Invalid files do not replace valid ones.
  LOOKOUT_OPTION std::string ca_file = {};
  LOOKOUT_OPTION std::string cert_file = {};
  LOOKOUT_OPTION std::string key_file = {};
  /// For an etcd with authentication; one of them empty: none.
  LOOKOUT_OPTION std::string username = {};
  LOOKOUT_OPTION std::string password = {};

  /// The limit for the first response of a member.
  std::chrono::milliseconds dial_timeout{3000};
  /// The time limit of a request, including retries. Does not apply to watches.
  std::chrono::milliseconds request_timeout{10000};

  /// The largest gRPC message that is sent (clientv3's MaxCallSendMsgSize): a larger request fails
  /// with 413. etcd itself accepts 1.5 MiB, unless --max-request-bytes sets another limit.
  std::size_t max_send_bytes = 2u << 20;
  /// The largest message that is accepted (clientv3's MaxCallRecvMsgSize). A request with a larger
  /// response fails; a watch ends with an error.
  std::size_t max_receive_bytes = 0x7fffffff;

  /// How often etcd is compacted; 0: never. If several servers share one etcd, only one compacts.
  std::chrono::milliseconds compaction_interval{std::chrono::minutes(5)};

  /// Serves lists and watches from a cache per resource, which one watch feeds. Without it, each of
  /// them goes to etcd.
  bool watch_cache = true;
  /// The number of changes of a resource that the cache keeps for slow watchers.
  std::size_t history = 10000;
  /// The limits of that history: bytes per resource, and age. The latest change is always kept.
  std::size_t history_bytes = 64u << 20;
  std::chrono::milliseconds history_age = std::chrono::minutes(10);
  /// How long a request or a watch waits for a future revision (then 504, "Too large resource
  /// version"), and a request for the cache (then 429).
  std::chrono::milliseconds future_wait{3000};

  /// Returns the transformer for the values of a resource, given its place ("secrets"). If the
  /// function or its result is null, values are not transformed.
  LOOKOUT_OPTION std::function<std::shared_ptr<const Transformer>(std::string_view place)>
      transformer = {};

  /// The transport of requests to etcd. Null: the network. A simulation has its own etcd
  /// (lookout/testing/sim/world.h); certificates have no effect there.
  LOOKOUT_OPTION std::shared_ptr<grpc::CarrierFactory> network = nullptr;

  /// Threads for the connections to etcd and for the caches. 0: one per processor.
  unsigned threads = 1;
};

/// Stores objects in etcd v3 as kube-apiserver does: the same keys, values in JSON
/// (`--storage-media-type=application/json`), revisions as resourceVersions. Any number of servers
/// may share one etcd and write to it.
///
/// It uses etcd's gRPC protocol directly and ignores proxies in the environment. If etcd
/// authenticates clients by certificate, the certificate's common name is the user.
///
/// Writes without a response throw StorageError (kUnreachable, kTimeout): they may have succeeded.
class EtcdBackend final : public Backend {
 public:
  /// Throws lookout::Error for invalid options. Does not check that etcd is reachable.
  explicit EtcdBackend(EtcdOptions options);
  ~EtcdBackend() override;

  Interface& resource(std::string_view place, std::chrono::seconds ttl = {},
                      std::string_view group_resource = {}) override;
  void release(std::string_view place) override;
  Awaitable<Revision> current_revision() override;
  std::string_view name() const override { return "etcd"; }
  /// Takes two seconds at most.
  Awaitable<void> check() override;
  std::string metrics() const override;
  void close() override;
  /// Discards history that is too old.
  void maintain() override;

  /// Compacts etcd's history before `revision`.
  Awaitable<void> compact(Revision revision);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::apiserver::storage
