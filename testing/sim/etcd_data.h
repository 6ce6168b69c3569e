// What an etcd keeps, and how it answers: the part of its model that has neither time nor network.
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

/// A message of protobuf that is being written. Numbers that are 0 and texts that are empty are left
/// out, as the Go library does.
class Proto {
 public:
  Proto& number(unsigned field, std::uint64_t value);
  Proto& bytes(unsigned field, std::string_view value);
  /// Also if it is empty.
  Proto& message(unsigned field, std::string_view value);
  Proto& message(unsigned field, const Proto& value) { return message(field, value.text_); }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value);

  std::string text_;
};

/// The fields of a request that are numbers and bytes; the last one of each number counts.
std::uint64_t number_in(std::string_view message, std::uint64_t field);
std::string_view bytes_in(std::string_view message, std::uint64_t field);
bool has_field(std::string_view message, std::uint64_t field);

/// A range of keys as etcd's requests name it: one key if `end` is empty, all from `key` on if it is
/// "\0".
struct EtcdRange {
  std::string key;
  std::string end;

  bool contains(std::string_view other) const;
};

/// The keys of an etcd with all their versions since the last compaction, and its leases. Requests
/// and answers are messages of etcdserverpb. Refusals are EtcdErrors with etcd's codes and words. A
/// copy of which the same is asked is the same. Not thread-safe.
class EtcdData {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    std::uint64_t cluster_id = 0xc1;
    /// "3.5.16"
    std::string version;
    /// The revision to begin with.
    Revision revision = 1;
    /// Requests may be so large.
    std::size_t max_request_bytes = 1536u << 10;
    /// Leases last at least so long.
    std::chrono::seconds shortest_lease{1};
  };

  explicit EtcdData(Options options) : options_(std::move(options)), revision_(options_.revision) {}

  Revision revision() const { return revision_; }
  /// Nothing is known of what was before it; 0: of everything.
  Revision compacted() const { return compacted_; }
  /// The pairs with this prefix, by their keys.
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
  /// Leases that have expired, and are still to be revoked.
  std::vector<std::int64_t> expired(TimePoint now) const;
  /// Removes a lease that there is, and what hangs on it.
  void revoke(std::int64_t id);
  /// When the next lease expires.
  std::optional<TimePoint> next_expiry() const;
  /// Another leader: every lease gets its whole time again.
  void renew_leases(TimePoint now);

  /// A change, as a watch tells it.
  struct Change {
    bool deleted = false;
    etcd3::KeyValue kv;
  };
  /// Those of a revision; none if nothing is known of it.
  const std::vector<Change>* changes_at(Revision revision) const;
  /// The first revision from `from` on of which changes are known.
  std::optional<Revision> next_change(Revision from) const;
  /// An event for a change, with the pair before it if `previous` and if that is known.
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
  /// One revision in the making.
  struct Writing {
    Revision revision = 0;
    std::vector<Change> changes = {};
  };

  const etcd3::KeyValue* find(const std::string& key, Revision at) const;
  /// Throws if a key is missing or a revision is not there.
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

/// Whether an etcd of that version keeps the deletion of a key at the very revision of a compaction,
/// so that a watch from there still sees it.
bool keeps_last_deletion(std::string_view version);

}  // namespace lookout::sim
