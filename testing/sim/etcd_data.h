// EtcdData: the data of a simulated etcd and its requests, without time and network.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/storage/etcd3/messages.h"

namespace lookout::sim {

namespace etcd3 = apiserver::storage::etcd3;
using apiserver::storage::Revision;

/// Builds a protobuf message. Omits zero numbers and empty strings, as Go's protobuf library does.
class Proto {
 public:
  Proto& number(unsigned field, std::uint64_t value);
  Proto& bytes(unsigned field, std::string_view value);
  /// Written even if it is empty.
  Proto& message(unsigned field, std::string_view value);
  Proto& message(unsigned field, const Proto& value) { return message(field, value.text_); }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value);

  std::string text_;
};

/// A number or a string in a request, by field number; if a field is repeated, the last one counts.
std::uint64_t number_in(std::string_view message, std::uint64_t field);
std::string_view bytes_in(std::string_view message, std::uint64_t field);
bool has_field(std::string_view message, std::uint64_t field);

/// A range of keys, as in etcd's requests: one key if `end` is empty; all keys from `key` on if `end` is
/// "\0".
struct EtcdRange {
  std::string key;
  std::string end;

  bool contains(std::string_view other) const;
};

/// The keys of an etcd with all versions since the last compaction, and its leases. Requests and
/// responses are messages of etcdserverpb. Errors are EtcdErrors with etcd's codes and messages.
/// Deterministic: the same requests have the same effect on a copy. Not thread-safe.
class EtcdData {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    std::uint64_t cluster_id = 0xc1;
    /// "3.5.16"
    std::string version;
    /// The first revision.
    Revision revision = 1;
    /// The maximum size of a request.
    std::size_t max_request_bytes = 1536u << 10;
    /// The minimum TTL of a lease.
    std::chrono::seconds shortest_lease{1};
  };

  explicit EtcdData(Options options) : options_(std::move(options)), revision_(options_.revision) {}

  Revision revision() const { return revision_; }
  /// The compacted revision; 0: none.
  Revision compacted() const { return compacted_; }
  /// The pairs with this prefix, by key.
  std::map<std::string, etcd3::KeyValue> contents(std::string_view prefix) const;

  std::string range(std::string_view request, std::uint64_t member) const;
  std::string put(std::string_view request, std::uint64_t member);
  std::string remove(std::string_view request, std::uint64_t member);
  std::string txn(std::string_view request, std::uint64_t member);
  std::string compact(std::string_view request, std::uint64_t member);
  void compact(Revision revision);

  std::string grant(std::string_view request, std::uint64_t member, TimePoint now);
  std::string revoke(std::string_view request, std::uint64_t member);
  std::string keep_alive(std::string_view request, std::uint64_t member, TimePoint now);
  /// The expired leases that have not been revoked yet.
  std::vector<std::int64_t> expired(TimePoint now) const;
  /// Removes an existing lease and its keys.
  void revoke(std::int64_t id);
  /// The time at which the next lease expires.
  std::optional<TimePoint> next_expiry() const;
  /// A new leader extends every lease to its full TTL.
  void renew_leases(TimePoint now);

  /// A change, as a watch delivers it.
  struct Change {
    bool deleted = false;
    etcd3::KeyValue kv;
  };
  /// The changes of a revision; null if it is not in the history.
  const std::vector<Change>* changes_at(Revision revision) const;
  /// The first revision in the history at or after `from`.
  std::optional<Revision> next_change(Revision from) const;
  /// The event for a change; with the previous pair if `previous` is set and the pair is known.
  Proto event(const Change& change, bool previous) const;

  Proto header(Revision revision, std::uint64_t member) const;

 private:
  struct Version {
    etcd3::KeyValue kv;
    bool deleted = false;
  };
  struct Lease {
    std::chrono::seconds ttl{0};
    TimePoint expires;
    std::set<std::string> keys;
  };
  /// A revision under construction.
  struct Writing {
    Revision revision = 0;
    std::vector<Change> changes = {};
  };

  const etcd3::KeyValue* find(const std::string& key, Revision at) const;
  /// Throws if the key is missing or the revision is not available.
  void check_range(std::string_view request) const;
  std::string range_at(std::string_view request, Revision now, std::uint64_t member) const;
  std::string put_in(std::string_view request, Writing& writing, std::uint64_t member);
  std::string remove_in(std::string_view request, Writing& writing, std::uint64_t member);
  std::size_t remove_keys(const std::vector<std::string>& keys, Writing& writing);
  bool holds(std::string_view compare) const;
  void commit(Writing writing);
  void detach(const std::string& key, std::int64_t lease);
  Revision now_in(const Writing& writing) const {
    return writing.changes.empty() ? revision_ : writing.revision;
  }
  void check_size(std::string_view request) const;

  const Options options_;
  Revision revision_;
  Revision compacted_ = 0;
  std::map<std::string, std::vector<Version>, std::less<>> keys_;
  std::map<Revision, std::vector<Change>> log_;
  std::map<std::int64_t, Lease> leases_;
  std::int64_t next_lease_ = 0x1000;
};

/// True if an etcd of this version keeps a deletion at the compacted revision itself, so that a watch
/// from there still sees it.
bool keeps_last_deletion(std::string_view version);

}  // namespace lookout::sim
