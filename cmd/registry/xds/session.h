// The xDS v3 discovery protocol of one stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cmd/registry/xds/proto/discovery.pb.h"
#include "cmd/registry/xds/snapshot.h"

namespace lookout::cmd::registry_cmd::xds {

/// The limits of a stream's memory and of its messages. (State of the world must send all clusters
/// in one message.)
struct Limits {
  std::size_t names = 20'000;  ///< of each type
  std::size_t name_size = 1024;
  std::size_t response = 1 << 20;
};

/// Why a stream must end, if it must.
using Problem = std::optional<std::string>;

/// A stream's subscription to the resources of one type.
struct Interest {
  bool asked = false;     ///< a request was received
  bool named = false;     ///< a request with names was received
  bool wildcard = false;  ///< subscribed to all resources
  std::set<std::string> names = {};
  /// By name, the version that was sent to the client or that the client reported.
  std::map<std::string, std::string> sent = {};
  /// Names that need a response, whether the resource exists or not.
  std::set<std::string> owed = {};
  bool answer_due = false;  ///< even if there is no change
  bool changed = true;      ///< there may be changes, regardless of the revision
  std::uint64_t revision = 0;
  std::string nonce = {};

  bool wants(const std::string& name) const { return wildcard || names.contains(name); }
  /// Whether the client has this version.
  bool has(const std::string& name, const Resource& resource) const;
  /// Removes unwanted resources from `sent`.
  void prune();
};

/// The common part of both variants of the protocol. Not thread-safe. The stream requests the next
/// response after the last one was sent; it contains all changes in the meantime.
class SessionBase {
 public:
  /// The client's node id, for messages.
  const std::string& node() const { return node_; }
  /// The number of responses that the client has rejected.
  std::uint64_t rejections() const { return rejections_; }

 protected:
  explicit SessionBase(Limits limits) : limits_(limits) {}

  Interest& interest(Type type) { return interests_[index_of(type)]; }
  /// The next type, in sending order, that may have changes. Marks its revision as seen.
  std::optional<Type> due(const Snapshot& snapshot);
  void note_node(const envoy::config::core::v3::Node& node);
  void note_rejection(Type type, const std::string& nonce, const google::rpc::Status& why);
  Problem add_name(Interest& interest, const std::string& name) const;
  /// Records the sent version. After a changed cluster, Envoy waits until it receives the endpoints
  /// again.
  void note_sent(Type type, const Resource& resource);
  /// The wanted resources that the client does not have, up to the size limit of a response. Marks
  /// them as sent. `clear_gone`: removed endpoints are sent as an empty set.
  std::vector<ResourcePtr> take_changed(Type type, const Snapshot& snapshot, bool clear_gone);
  /// Calls visit(name, resource) for all wanted resources, until it returns false. The resource is
  /// null if it does not exist.
  template <class Visit>
  void each_wanted(Type type, const Snapshot& snapshot, Visit visit);
  std::string next_nonce() { return std::to_string(++last_nonce_); }

  Limits limits_;

 private:
  std::array<Interest, kTypes.size()> interests_;
  std::string node_ = "a client without a node id";
  std::uint64_t last_nonce_ = 0;
  std::uint64_t rejections_ = 0;
};

/// State of the world. A response with clusters or listeners has all that the client wants; one with
/// endpoints or routes has the changed ones. This variant cannot remove endpoints, and addresses are
/// reused, so clients get an empty set of endpoints when a service is removed.
class StateSession : public SessionBase {
 public:
  using Request = envoy::service::discovery::v3::DiscoveryRequest;
  using Response = envoy::service::discovery::v3::DiscoveryResponse;

  explicit StateSession(Limits limits = {}) : SessionBase(limits) {}
  Problem on_request(const Request& request);
  /// Nothing if the client has all that it wants.
  std::optional<Response> next(const Snapshot& snapshot);

 private:
  Problem subscribe(Type type, const Request& request);
  /// All that the client wants; nullopt if the client has exactly that.
  std::optional<std::vector<ResourcePtr>> take_all(Type type, const Snapshot& snapshot);
};

/// Incremental: a response has new and changed resources, and the names of removed ones.
class DeltaSession : public SessionBase {
 public:
  using Request = envoy::service::discovery::v3::DeltaDiscoveryRequest;
  using Response = envoy::service::discovery::v3::DeltaDiscoveryResponse;

  explicit DeltaSession(Limits limits = {}) : SessionBase(limits) {}
  Problem on_request(const Request& request);
  /// Nothing if the client has all that it wants.
  std::optional<Response> next(const Snapshot& snapshot);

 private:
  Problem begin(Type type, const Request& request);
  Problem subscribe(Type type, const Request& request, bool first);
  void unsubscribe(Type type, const Request& request);
  void add_gone(Type type, const Snapshot& snapshot, Response& response);
};

}  // namespace lookout::cmd::registry_cmd::xds
