#include "testing/sim/etcd_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "lookout/api/detail/wire_reader.h"

namespace lookout::sim {

using api::detail::for_each_field;
using api::detail::WireContent;
using etcd3::EtcdError;
using etcd3::KeyValue;
using std::chrono::seconds;

namespace {

constexpr std::size_t kMaxOperations = 128;
constexpr std::int64_t kLongestLease = 9'000'000'000;

// Fields, by message.
namespace range_field {
constexpr std::uint64_t kKey = 1, kEnd = 2, kLimit = 3, kRevision = 4, kKeysOnly = 8,
                        kCountOnly = 9, kMinModRevision = 10;
}
namespace put_field {
constexpr std::uint64_t kKey = 1, kValue = 2, kLease = 3, kPrevious = 4;
}
namespace delete_field {
constexpr std::uint64_t kKey = 1, kEnd = 2, kPrevious = 3;
}
namespace compare_field {
constexpr std::uint64_t kResult = 1, kTarget = 2, kKey = 3, kVersion = 4, kCreate = 5, kMod = 6,
                        kValue = 7, kLease = 8;
}
namespace txn_field {
constexpr std::uint64_t kCompare = 1, kSuccess = 2, kFailure = 3;
}
namespace operation_field {
constexpr std::uint64_t kRange = 1, kPut = 2, kDelete = 3;
}

EtcdError no_key() { return {EtcdError::kInvalidArgument, "etcdserver: key is not provided"}; }
EtcdError forgotten() {
  return {EtcdError::kOutOfRange, "etcdserver: mvcc: required revision has been compacted"};
}
EtcdError future() {
  return {EtcdError::kOutOfRange, "etcdserver: mvcc: required revision is a future revision"};
}
EtcdError no_lease() { return {EtcdError::kNotFound, "etcdserver: requested lease not found"}; }

Proto proto_of(const KeyValue& kv, bool with_value = true, bool with_lease = true) {
  Proto out;
  out.bytes(1, kv.key).number(2, kv.create_revision).number(3, kv.mod_revision);
  out.number(4, static_cast<std::uint64_t>(kv.version));
  if (with_value) out.bytes(5, kv.value);
  return out.number(6, with_lease ? static_cast<std::uint64_t>(kv.lease) : 0);
}

std::int64_t signed_in(std::string_view message, std::uint64_t field) {
  return static_cast<std::int64_t>(number_in(message, field));
}

template <class T>
bool compares(std::uint64_t result, const T& is, const T& asked) {
  switch (result) {
    case 0:
      return is == asked;
    case 1:
      return is > asked;
    case 2:
      return is < asked;
    default:
      return is != asked;
  }
}

}  // namespace

// --------------------------------------------------------------------------------------- messages

void Proto::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
  text_.push_back(static_cast<char>(value));
}

Proto& Proto::number(unsigned field, std::uint64_t value) {
  if (value == 0) return *this;
  varint(field << 3 | api::detail::kVarint);
  varint(value);
  return *this;
}

Proto& Proto::bytes(unsigned field, std::string_view value) {
  return value.empty() ? *this : message(field, value);
}

Proto& Proto::message(unsigned field, std::string_view value) {
  varint(field << 3 | api::detail::kBytes);
  varint(value.size());
  text_.append(value);
  return *this;
}

std::uint64_t number_in(std::string_view message, std::uint64_t field) {
  std::uint64_t out = 0;
  for_each_field(message, [&](std::uint64_t number, const WireContent& content) {
    if (number == field) out = content.number;
  });
  return out;
}

std::string_view bytes_in(std::string_view message, std::uint64_t field) {
  std::string_view out;
  for_each_field(message, [&](std::uint64_t number, const WireContent& content) {
    if (number == field) out = content.bytes;
  });
  return out;
}

bool has_field(std::string_view message, std::uint64_t field) {
  bool out = false;
  for_each_field(message,
                 [&](std::uint64_t number, const WireContent&) { out = out || number == field; });
  return out;
}

bool EtcdRange::contains(std::string_view other) const {
  if (end.empty()) return other == key;
  return other >= key && (end == std::string_view("\0", 1) || other < end);
}

namespace {

std::array<unsigned, 3> numbers_of(std::string_view version) {
  std::array<unsigned, 3> parts{};
  for (unsigned& part : parts) {
    const auto read = std::from_chars(version.data(), version.data() + version.size(), part);
    version.remove_prefix(static_cast<std::size_t>(read.ptr - version.data()));
    if (version.starts_with('.')) version.remove_prefix(1);
  }
  return parts;
}

/// True if a range request with keys_only returns leases.
bool has_leases_of_keys(std::string_view version) {
  constexpr std::array<unsigned, 3> kIn38 = {3, 8, 0};
  return numbers_of(version) < kIn38;
}

}  // namespace

bool keeps_last_deletion(std::string_view version) {
  const std::array<unsigned, 3> parts = numbers_of(version);
  constexpr std::array<unsigned, 3> kIn34 = {3, 4, 34};
  constexpr std::array<unsigned, 3> kIn35 = {3, 5, 16};
  constexpr std::array<unsigned, 3> k35 = {3, 5, 0};
  return parts >= kIn35 || (parts >= kIn34 && parts < k35);
}

// ------------------------------------------------------------------------------------------- data

Proto EtcdData::header(Revision revision, std::uint64_t member) const {
  Proto out;
  return out.number(1, options_.cluster_id).number(2, member).number(3, revision).number(4, 2);
}

const KeyValue* EtcdData::find(const std::string& key, Revision at) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  const auto& versions = found->second;
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    if (version->kv.mod_revision <= at) return version->deleted ? nullptr : &version->kv;
  }
  return nullptr;
}

std::map<std::string, KeyValue> EtcdData::contents(std::string_view prefix) const {
  std::map<std::string, KeyValue> out;
  for (auto at = keys_.lower_bound(prefix); at != keys_.end() && at->first.starts_with(prefix);
       ++at) {
    const Version& last = at->second.back();
    if (!last.deleted) out.emplace(at->first, last.kv);
  }
  return out;
}

void EtcdData::check_size(std::string_view request) const {
  if (request.size() > options_.max_request_bytes)
    throw EtcdError(EtcdError::kInvalidArgument, "etcdserver: request is too large");
}

void EtcdData::check_range(std::string_view request) const {
  if (bytes_in(request, range_field::kKey).empty()) throw no_key();
  const Revision at = number_in(request, range_field::kRevision);
  if (at > revision_) throw future();
  if (at != 0 && at < compacted_) throw forgotten();
}

std::string EtcdData::range(std::string_view request, std::uint64_t member) const {
  check_range(request);
  return range_at(request, revision_, member);
}

std::string EtcdData::range_at(std::string_view request, Revision now, std::uint64_t member) const {
  const EtcdRange asked{std::string(bytes_in(request, range_field::kKey)),
                        std::string(bytes_in(request, range_field::kEnd))};
  const Revision wanted = number_in(request, range_field::kRevision);
  const Revision at = wanted != 0 ? wanted : now;
  std::vector<const KeyValue*> found;
  for (auto key = keys_.lower_bound(asked.key); key != keys_.end() && asked.contains(key->first);
       ++key) {
    if (const KeyValue* kv = find(key->first, at)) found.push_back(kv);
  }
  const std::size_t count = found.size();
  Proto out;
  out.message(1, header(now, member));
  if (number_in(request, range_field::kCountOnly) != 0) return out.number(4, count).text();
  const Revision least = number_in(request, range_field::kMinModRevision);
  std::erase_if(found, [&](const KeyValue* kv) { return kv->mod_revision < least; });
  const std::uint64_t limit = number_in(request, range_field::kLimit);
  const bool more = limit != 0 && found.size() > limit;
  if (more) found.resize(limit);
  const bool with_values = number_in(request, range_field::kKeysOnly) == 0;
  const bool with_leases = with_values || has_leases_of_keys(options_.version);
  for (const KeyValue* kv : found) out.message(2, proto_of(*kv, with_values, with_leases));
  return out.number(3, more ? 1 : 0).number(4, count).text();
}

void EtcdData::detach(const std::string& key, std::int64_t lease) {
  const auto found = leases_.find(lease);
  if (found != leases_.end()) found->second.keys.erase(key);
}

std::string EtcdData::put_in(std::string_view request, Writing& writing, std::uint64_t member) {
  KeyValue kv;
  kv.key = bytes_in(request, put_field::kKey);
  kv.value = bytes_in(request, put_field::kValue);
  kv.lease = signed_in(request, put_field::kLease);
  const auto lease = leases_.find(kv.lease);
  if (kv.lease != 0 && lease == leases_.end()) throw no_lease();
  Proto out;
  out.message(1, header(writing.revision, member));
  const KeyValue* const before = find(kv.key, writing.revision);
  if (before != nullptr && number_in(request, put_field::kPrevious) != 0)
    out.message(2, proto_of(*before));
  kv.create_revision = before != nullptr ? before->create_revision : writing.revision;
  kv.version = before != nullptr ? before->version + 1 : 1;
  kv.mod_revision = writing.revision;
  if (before != nullptr) detach(kv.key, before->lease);
  if (kv.lease != 0) lease->second.keys.insert(kv.key);
  writing.changes.push_back({false, kv});
  std::vector<Version>& versions = keys_[kv.key];
  versions.push_back({std::move(kv), false});
  return out.text();
}

std::size_t EtcdData::remove_keys(const std::vector<std::string>& keys, Writing& writing) {
  for (const std::string& key : keys) {
    std::vector<Version>& versions = keys_.at(key);
    detach(key, versions.back().kv.lease);
    KeyValue kv;
    kv.key = key;
    kv.mod_revision = writing.revision;
    writing.changes.push_back({true, kv});
    versions.push_back({std::move(kv), true});
  }
  return keys.size();
}

std::string EtcdData::remove_in(std::string_view request, Writing& writing, std::uint64_t member) {
  const EtcdRange asked{std::string(bytes_in(request, delete_field::kKey)),
                        std::string(bytes_in(request, delete_field::kEnd))};
  std::vector<std::string> keys;
  std::vector<Proto> previous;
  for (auto key = keys_.lower_bound(asked.key); key != keys_.end() && asked.contains(key->first);
       ++key) {
    const Version& last = key->second.back();
    if (last.deleted) continue;
    keys.push_back(key->first);
    previous.push_back(proto_of(last.kv));
  }
  const std::size_t count = remove_keys(keys, writing);
  Proto out;
  out.message(1, header(now_in(writing), member)).number(2, count);
  if (number_in(request, delete_field::kPrevious) != 0) {
    for (const Proto& kv : previous) out.message(3, kv);
  }
  return out.text();
}

void EtcdData::commit(Writing writing) {
  if (writing.changes.empty()) return;
  revision_ = writing.revision;
  log_.emplace(revision_, std::move(writing.changes));
}

std::string EtcdData::put(std::string_view request, std::uint64_t member) {
  check_size(request);
  if (bytes_in(request, put_field::kKey).empty()) throw no_key();
  Writing writing{revision_ + 1};
  std::string out = put_in(request, writing, member);
  commit(std::move(writing));
  return out;
}

std::string EtcdData::remove(std::string_view request, std::uint64_t member) {
  check_size(request);
  if (bytes_in(request, delete_field::kKey).empty()) throw no_key();
  Writing writing{revision_ + 1};
  std::string out = remove_in(request, writing, member);
  commit(std::move(writing));
  return out;
}

bool EtcdData::holds(std::string_view compare) const {
  const std::uint64_t result = number_in(compare, compare_field::kResult);
  const KeyValue none;
  const KeyValue* kv = find(std::string(bytes_in(compare, compare_field::kKey)), revision_);
  const bool there = kv != nullptr;
  if (!there) kv = &none;
  switch (number_in(compare, compare_field::kTarget)) {
    case 0:
      return compares(result, kv->version, signed_in(compare, compare_field::kVersion));
    case 1:
      return compares<Revision>(result, kv->create_revision,
                                number_in(compare, compare_field::kCreate));
    case 2:
      return compares<Revision>(result, kv->mod_revision, number_in(compare, compare_field::kMod));
    case 3:
      // An absent key has no value to compare.
      return there && compares<std::string_view>(result, kv->value,
                                                 bytes_in(compare, compare_field::kValue));
    default:
      return compares(result, kv->lease, signed_in(compare, compare_field::kLease));
  }
}

namespace {

/// Validates a branch of a transaction, whether or not it is taken.
void check_keys(const std::vector<std::string_view>& operations) {
  for (const auto operation : operations) {
    for_each_field(operation, [&](std::uint64_t, const WireContent& content) {
      // The key has field number 1 in each operation.
      if (bytes_in(content.bytes, 1).empty()) throw no_key();
    });
  }
}

void check_distinct(const std::vector<std::string_view>& operations) {
  std::set<std::string> put;
  std::vector<EtcdRange> removed;
  bool distinct = true;
  for (const auto operation : operations) {
    const auto remove = bytes_in(operation, operation_field::kDelete);
    if (!remove.empty()) {
      removed.push_back({std::string(bytes_in(remove, delete_field::kKey)),
                         std::string(bytes_in(remove, delete_field::kEnd))});
    }
    const auto key = bytes_in(bytes_in(operation, operation_field::kPut), put_field::kKey);
    if (!key.empty()) distinct = put.emplace(key).second && distinct;
  }
  for (const EtcdRange& range : removed) {
    for (const std::string& key : put) distinct = distinct && !range.contains(key);
  }
  if (!distinct) {
    throw EtcdError(EtcdError::kInvalidArgument, "etcdserver: duplicate key given in txn request");
  }
}

}  // namespace

std::string EtcdData::txn(std::string_view request, std::uint64_t member) {
  check_size(request);
  std::vector<std::string_view> compares;
  std::vector<std::string_view> success;
  std::vector<std::string_view> failure;
  for_each_field(request, [&](std::uint64_t field, const WireContent& content) {
    if (field == txn_field::kCompare) compares.push_back(content.bytes);
    if (field == txn_field::kSuccess) success.push_back(content.bytes);
    if (field == txn_field::kFailure) failure.push_back(content.bytes);
  });
  if (std::max({compares.size(), success.size(), failure.size()}) > kMaxOperations) {
    throw EtcdError(EtcdError::kInvalidArgument, "etcdserver: too many operations in txn request");
  }
  for (const auto compare : compares) {
    if (bytes_in(compare, compare_field::kKey).empty()) throw no_key();
  }
  check_keys(success);
  check_keys(failure);
  check_distinct(success);
  check_distinct(failure);
  const bool succeeded =
      std::all_of(compares.begin(), compares.end(), [&](auto compare) { return holds(compare); });
  const auto& branch = succeeded ? success : failure;
  // A transaction is atomic: check everything first.
  for (const auto operation : branch) {
    const auto lease = signed_in(bytes_in(operation, operation_field::kPut), put_field::kLease);
    if (lease != 0 && !leases_.contains(lease)) throw no_lease();
  }
  for (const auto operation : branch) {
    if (has_field(operation, operation_field::kRange))
      check_range(bytes_in(operation, operation_field::kRange));
  }
  Writing writing{revision_ + 1};
  std::vector<Proto> answers;
  for (const auto operation : branch) {
    for_each_field(operation, [&](std::uint64_t field, const WireContent& content) {
      Proto answer;
      if (field == operation_field::kRange)
        answer.message(1, range_at(content.bytes, now_in(writing), member));
      if (field == operation_field::kPut) answer.message(2, put_in(content.bytes, writing, member));
      if (field == operation_field::kDelete)
        answer.message(3, remove_in(content.bytes, writing, member));
      answers.push_back(std::move(answer));
    });
  }
  Proto out;
  out.message(1, header(now_in(writing), member)).number(2, succeeded ? 1 : 0);
  for (const Proto& answer : answers) out.message(3, answer);
  commit(std::move(writing));
  return out.text();
}

std::string EtcdData::compact(std::string_view request, std::uint64_t member) {
  compact(number_in(request, 1));
  return Proto().message(1, header(revision_, member)).text();
}

void EtcdData::compact(Revision revision) {
  if (revision <= compacted_) throw forgotten();
  if (revision > revision_) throw future();
  compacted_ = revision;
  // Keeps the state at that revision, except deleted keys.
  const bool keeps_deletion = keeps_last_deletion(options_.version);
  for (auto key = keys_.begin(); key != keys_.end();) {
    std::vector<Version>& versions = key->second;
    auto last = versions.end();
    for (auto version = versions.begin(); version != versions.end(); ++version) {
      if (version->kv.mod_revision <= revision) last = version;
    }
    if (last != versions.end()) {
      const bool stays = !last->deleted || (keeps_deletion && last->kv.mod_revision == revision);
      versions.erase(versions.begin(), stays ? last : last + 1);
    }
    key = versions.empty() ? keys_.erase(key) : std::next(key);
  }
  log_.erase(log_.begin(), log_.lower_bound(revision));
  const auto at = log_.find(revision);
  if (at == log_.end() || keeps_deletion) return;
  std::erase_if(at->second, [](const Change& change) { return change.deleted; });
  if (at->second.empty()) log_.erase(at);
}

// ----------------------------------------------------------------------------------------- leases

std::string EtcdData::grant(std::string_view request, std::uint64_t member, TimePoint now) {
  const std::int64_t ttl = signed_in(request, 1);
  std::int64_t id = signed_in(request, 2);
  if (ttl > kLongestLease)
    throw EtcdError(EtcdError::kOutOfRange, "etcdserver: too large lease TTL");
  if (id == 0) id = next_lease_++;
  if (leases_.contains(id))
    throw EtcdError(EtcdError::kFailedPrecondition, "etcdserver: lease already exists");
  Lease lease;
  lease.ttl = std::max(seconds(ttl), options_.shortest_lease);
  lease.expires = now + lease.ttl;
  const auto given = static_cast<std::uint64_t>(lease.ttl.count());
  leases_.emplace(id, std::move(lease));
  Proto out;
  out.message(1, header(revision_, member)).number(2, static_cast<std::uint64_t>(id));
  return out.number(3, given).text();
}

void EtcdData::revoke(std::int64_t id) {
  const auto found = leases_.find(id);
  const std::vector<std::string> keys(found->second.keys.begin(), found->second.keys.end());
  Writing writing{revision_ + 1};
  remove_keys(keys, writing);
  leases_.erase(id);
  commit(std::move(writing));
}

std::string EtcdData::revoke(std::string_view request, std::uint64_t member) {
  const std::int64_t id = signed_in(request, 1);
  if (!leases_.contains(id)) throw no_lease();
  revoke(id);
  return Proto().message(1, header(revision_, member)).text();
}

std::string EtcdData::keep_alive(std::string_view request, std::uint64_t member, TimePoint now) {
  const std::int64_t id = signed_in(request, 1);
  const auto found = leases_.find(id);
  std::chrono::seconds left{0};
  if (found != leases_.end()) {
    left = found->second.ttl;
    found->second.expires = now + left;
  }
  Proto out;
  out.message(1, header(revision_, member)).number(2, static_cast<std::uint64_t>(id));
  return out.number(3, static_cast<std::uint64_t>(left.count())).text();
}

std::vector<std::int64_t> EtcdData::expired(TimePoint now) const {
  std::vector<std::int64_t> out;
  for (const auto& [id, lease] : leases_) {
    if (lease.expires <= now) out.push_back(id);
  }
  return out;
}

std::optional<EtcdData::TimePoint> EtcdData::next_expiry() const {
  std::optional<TimePoint> out;
  for (const auto& [id, lease] : leases_)
    out = std::min(out.value_or(lease.expires), lease.expires);
  return out;
}

void EtcdData::renew_leases(TimePoint now) {
  for (auto& [id, lease] : leases_) lease.expires = now + lease.ttl;
}

// ---------------------------------------------------------------------------------------- watches

const std::vector<EtcdData::Change>* EtcdData::changes_at(Revision revision) const {
  const auto found = log_.find(revision);
  return found == log_.end() ? nullptr : &found->second;
}

std::optional<Revision> EtcdData::next_change(Revision from) const {
  const auto found = log_.lower_bound(from);
  if (found == log_.end()) return std::nullopt;
  return found->first;
}

Proto EtcdData::event(const Change& change, bool previous) const {
  Proto out;
  out.number(1, change.deleted ? 1 : 0).message(2, proto_of(change.kv));
  const Revision before = change.kv.mod_revision - 1;
  // The previous state may have been compacted already.
  const bool known = previous && before >= compacted_;
  const KeyValue* const kv = known ? find(change.kv.key, before) : nullptr;
  if (kv != nullptr) out.message(3, proto_of(*kv));
  return out;
}

}  // namespace lookout::sim
