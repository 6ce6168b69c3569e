// The discovery protocol of xDS v3, as one stream speaks it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/registry/xds/proto/discovery.pb.h"
#include "cmd/registry/xds/snapshot.h"

namespace lookout::cmd::registry_cmd::xds {

/// The bounds of what a stream may hold here, and of a message that is sent to it. (State of the
/// world has to send all clusters in one.)
struct Limits {
  std::size_t names = 20'000;  ///< of each type
  std::size_t name_size = 1024;
  std::size_t response = 1 << 20;
};

/// Why a stream has to end.
using Problem = std::optional<std::string>;

/// The interest of a stream in the resources of one type.
struct Interest {
  bool asked = false;     ///< there has been a request
  bool named = false;     ///< there has been one with names
  bool wildcard = false;  ///< all that there are
  std::set<std::string> names = {};
  /// By name, the version that the client has been sent, or said that it has.
  std::map<std::string, std::string> sent = {};
  /// Names to answer about, whether there is such a resource or not.
  std::set<std::string> owed = {};
  bool answer_due = false;  ///< even if there is nothing to say
  bool changed = true;      ///< there may be news, whatever the revision
  std::uint64_t revision = 0;
  std::string nonce = {};

  bool wants(const std::string& name) const { return wildcard || names.contains(name); }
  /// Whether the client has exactly this.
  bool has(const std::string& name, const Resource& resource) const;
  /// Forgets what was sent of resources that are no longer wanted.
  void prune();
};

/// The common part of both variants of the protocol. Not thread-safe. It is asked for the next
/// response when the last one is on its way; all that happened meanwhile is in it.
class SessionBase {
 public:
  /// The client as it calls itself, for messages.
  const std::string& node() const { return node_; }
  /// How many responses the client has rejected.
  std::uint64_t rejections() const { return rejections_; }

 protected:
  explicit SessionBase(Limits limits) : limits_(limits) {}

  Interest& interest(Type type) { return interests_[index_of(type)]; }
  /// The next type in the order of sending that may have news; its revision counts as seen then.
  std::optional<Type> due(const Snapshot& snapshot);
  void note_node(const envoy::config::core::v3::Node& node);
  void note_rejection(Type type, const std::string& nonce, const google::rpc::Status& why);
  Problem add_name(Interest& interest, const std::string& name) const;
  /// Remembers the version that is sent. In Envoy, a cluster that is another than before waits for
  /// its endpoints to come again.
  void note_sent(Type type, const Resource& resource);
  /// The wanted resources that the client does not have, as sent; as many as one response may have.
  /// `clear_gone`: endpoints that are gone come as an empty set.
  std::vector<ResourcePtr> take_changed(Type type, const Snapshot& snapshot, bool clear_gone);
  /// Calls visit(name, resource) for all that a stream wants, until it returns false. The resource
  /// is null if there is none.
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

/// State of the world. A response with clusters or listeners has all that the client wants; one
/// with endpoints or routes has those that changed. When a service goes, clients get an empty set of
/// endpoints: this variant cannot say that endpoints are gone, and the addresses will have others.
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
  /// All that the client wants; nothing if it has exactly that.
  std::optional<std::vector<ResourcePtr>> take_all(Type type, const Snapshot& snapshot);
};

/// Incremental: a response has what is new or changed, and the names of what is gone.
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
