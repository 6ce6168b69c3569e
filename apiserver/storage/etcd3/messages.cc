#include "apiserver/storage/etcd3/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lookout/api/detail/wire_reader.h"

namespace lookout::apiserver::storage::etcd3 {

using api::detail::begin_of;
using api::detail::end_of;
using api::detail::for_each_field;
using api::detail::read_number;
using api::detail::WireContent;

bool EtcdError::is_compacted() const {
  return compact_revision_ != 0 ||
         std::string_view(what()).find("required revision has been compacted") !=
             std::string_view::npos;
}

bool EtcdError::is_future_revision() const {
  return std::string_view(what()).find("required revision is a future revision") !=
         std::string_view::npos;
}

bool EtcdError::is_no_leader() const {
  return std::string_view(what()).find("etcdserver: no leader") != std::string_view::npos;
}

// The code is kUnavailable up to 3.5, and kFailedPrecondition from 3.6 on.
bool EtcdError::is_learner() const {
  return std::string_view(what()).find("rpc not supported for learner") != std::string_view::npos;
}

bool EtcdError::is_transient() const {
  return code_ == kUnavailable || code_ == kCancelled || code_ == kDeadlineExceeded ||
         code_ == kInternal || is_learner();
}

bool EtcdError::is_bad_token() const {
  const std::string_view text = what();
  return code_ == kUnauthenticated || text.find("invalid auth token") != std::string_view::npos ||
         text.find("user name is empty") != std::string_view::npos || is_old_auth_revision();
}

bool EtcdError::is_old_auth_revision() const {
  return std::string_view(what()).find("revision of auth store is old") != std::string_view::npos;
}

bool EtcdError::is_permission_denied() const {
  return code_ == kPermissionDenied ||
         std::string_view(what()).find("etcdserver: permission denied") != std::string_view::npos;
}

bool EtcdError::is_auth_not_enabled() const {
  return std::string_view(what()).find("authentication is not enabled") != std::string_view::npos;
}

EtcdError Message::failure() const {
  if (failed) return {code, error.empty() ? "etcd gives no reason" : error};
  if (compact_revision != 0) {
    return {EtcdError::kOutOfRange, "etcdserver: mvcc: required revision has been compacted",
            compact_revision};
  }
  return {EtcdError::kUnknown, cancel_reason.empty() ? "etcd ended the watch" : cancel_reason};
}

// Field numbers, by message.
namespace {

namespace header_field {
constexpr std::uint64_t kClusterId = 1, kMemberId = 2, kRevision = 3;
}
namespace key_field {
constexpr std::uint64_t kKey = 1, kCreateRevision = 2, kModRevision = 3, kVersion = 4, kValue = 5,
                        kLease = 6;
}
namespace event_field {
constexpr std::uint64_t kType = 1, kKv = 2, kPrevious = 3;
constexpr std::uint64_t kDelete = 1;  // a type
}  // namespace event_field
namespace range_field {
constexpr std::uint64_t kKvs = 2, kMore = 3, kCount = 4;
}
namespace txn_field {
constexpr std::uint64_t kSucceeded = 2, kResponses = 3;
}
namespace operation_field {
constexpr std::uint64_t kRange = 1, kPut = 2, kDelete = 3;
}
namespace watch_field {
constexpr std::uint64_t kWatchId = 2, kCreated = 3, kCanceled = 4, kCompactRevision = 5,
                        kCancelReason = 6, kFragment = 7, kEvents = 11;
}
namespace lease_field {
constexpr std::uint64_t kId = 2, kTtl = 3;
}
constexpr std::uint64_t kHeader = 1;  // of every response
constexpr std::uint64_t kPart = 1;    // of a stream of ranges
constexpr std::uint64_t kPreviousOfPut = 2;
constexpr std::uint64_t kPreviousOfDelete = 3;
constexpr std::uint64_t kTokenField = 2;
constexpr std::uint64_t kVersionField = 2;
constexpr std::uint64_t kMemberField = 2;
// In a member:
constexpr std::uint64_t kClientUrls = 4;
constexpr std::uint64_t kIsLearner = 5;

constexpr std::size_t kFrameHead = 5;
constexpr std::size_t kMaxTagBytes = 10;

/// The size of a tag or a number: 0 if it is incomplete.
std::size_t number_size(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size() && i < kMaxTagBytes; ++i) {
    if (static_cast<unsigned char>(bytes[i]) < 0x80) return i + 1;
  }
  return 0;
}

}  // namespace

MessageReader::MessageReader(AnswerKind kind, Callbacks callbacks, std::size_t max_value_bytes,
                             std::size_t max_message_bytes)
    : kind_(kind),
      callbacks_(std::move(callbacks)),
      max_value_bytes_(max_value_bytes),
      max_message_bytes_(max_message_bytes) {}

bool MessageReader::fail(std::string why) {
  if (error_.empty()) error_ = std::move(why);
  return false;
}

bool MessageReader::feed(std::string_view bytes) {
  if (!error_.empty()) return false;
  std::string joined;
  if (!buffer_.empty()) {
    buffer_.append(bytes);
    if (buffer_.size() < needed_) return true;
    joined = std::exchange(buffer_, {});
    bytes = joined;
  }
  needed_ = 0;
  while (step(bytes)) continue;
  buffer_ = bytes;
  return error_.empty();
}

/// Reads the next element. False if it is incomplete or malformed.
bool MessageReader::step(std::string_view& bytes) {
  if (skip_ != 0) {
    const auto some = std::min<std::uint64_t>(skip_, bytes.size());
    bytes.remove_prefix(some);
    skip_ -= some;
    if (skip_ != 0) return false;
  }
  if (levels_.empty()) return begin_message(bytes);
  Level& level = levels_.back();
  if (level.left == 0) return end_level();
  const std::string_view rest = bytes.substr(0, std::min<std::uint64_t>(level.left, bytes.size()));
  const std::size_t tag_size = number_size(rest);
  const std::size_t second_size = tag_size == 0 ? 0 : number_size(rest.substr(tag_size));
  const std::uint8_t* p = begin_of(rest);
  std::uint64_t tag = 0;
  const bool has_tag = tag_size != 0 && read_number(p, end_of(rest), tag);
  const bool fixed =
      has_tag && ((tag & 7) == api::detail::kFixed32 || (tag & 7) == api::detail::kFixed64);
  const std::size_t fixed_size = (tag & 7) == api::detail::kFixed64 ? 8 : 4;
  if (!has_tag || (fixed ? rest.size() < tag_size + fixed_size : second_size == 0)) {
    // A tag and a number have at most 20 bytes together.
    if (rest.size() == level.left || rest.size() >= 2 * kMaxTagBytes) return fail("a field is cut");
    return false;
  }
  const std::uint64_t field = tag >> 3;
  if (field == 0 || field > api::detail::kMaxFieldNumber) return fail("a field has a wrong number");
  std::uint64_t value = 0;
  if (!fixed && !read_number(p, end_of(rest), value)) return fail("a number is too long");
  switch (tag & 7) {
    case api::detail::kVarint:
      number(field, value);
      break;
    case api::detail::kBytes:
      return read_bytes(bytes, field, tag_size + second_size, value);
    case api::detail::kFixed32:
    case api::detail::kFixed64:
      break;
    default:
      return fail("a field has an unknown type");
  }
  const std::size_t size = tag_size + (fixed ? fixed_size : second_size);
  level.left -= size;
  bytes.remove_prefix(size);
  return error_.empty();
}

bool MessageReader::begin_message(std::string_view& bytes) {
  if (bytes.size() < kFrameHead) return false;
  if (bytes[0] != 0) return fail("it is compressed, or not a gRPC message");
  std::uint64_t size = 0;
  for (std::size_t i = 1; i < kFrameHead; ++i)
    size = size << 8 | static_cast<unsigned char>(bytes[i]);
  if (size > max_message_bytes_) {
    too_large_ = true;
    return fail(fmt::format("the response is too large: {} bytes, and at most {} are accepted",
                            size, max_message_bytes_));
  }
  bytes.remove_prefix(kFrameHead);
  levels_.push_back({Place::kAnswer, size});
  return true;
}

bool MessageReader::end_level() {
  levels_.pop_back();
  if (!levels_.empty()) return true;
  Message done = std::exchange(message_, {});
  if (callbacks_.message) callbacks_.message(std::move(done));
  return true;
}

bool MessageReader::read_bytes(std::string_view& bytes, std::uint64_t field, std::size_t head,
                               std::uint64_t size) {
  Level& level = levels_.back();
  if (size > level.left - head) return fail("a field is longer than its message");
  const Content content = content_of(field);
  if (content == Content::kUnknown || content == Content::kOperation || content == Content::kPart) {
    level.left -= head + size;
    bytes.remove_prefix(head);
    if (content == Content::kUnknown) {
      skip_ = size;
      return true;
    }
    return enter(field, size);
  }
  if (size > max_value_bytes_)
    return fail(fmt::format("a value of more than {} bytes", max_value_bytes_));
  if (bytes.size() < head + size) {
    needed_ = head + static_cast<std::size_t>(size);
    return false;
  }
  take(content, bytes.substr(head, static_cast<std::size_t>(size)));
  level.left -= head + size;
  bytes.remove_prefix(head + static_cast<std::size_t>(size));
  return error_.empty();
}

bool MessageReader::enter(std::uint64_t field, std::uint64_t size) {
  Place place = kind_ == AnswerKind::kRangeStream ? Place::kPart : Place::kOperation;
  if (levels_.back().place == Place::kOperation) {
    place = field == operation_field::kRange ? Place::kRangeInTxn
            : field == operation_field::kPut ? Place::kPutInTxn
                                             : Place::kDeleteInTxn;
  }
  levels_.push_back({place, size});
  return true;
}

/// Headers are repeated within transactions: only the outermost one counts.
MessageReader::Content MessageReader::content_of(std::uint64_t field) const {
  const Place place = levels_.back().place;
  const auto is = [&](AnswerKind kind, Place in_txn) {
    return place == in_txn || (place == Place::kAnswer && kind_ == kind);
  };
  if (place == Place::kOperation)
    return field <= operation_field::kDelete ? Content::kOperation : Content::kUnknown;
  if ((is(AnswerKind::kRange, Place::kRangeInTxn) || place == Place::kPart) &&
      field == range_field::kKvs)
    return Content::kKeyValue;
  if (is(AnswerKind::kPut, Place::kPutInTxn) && field == kPreviousOfPut) return Content::kKeyValue;
  if (is(AnswerKind::kDelete, Place::kDeleteInTxn) && field == kPreviousOfDelete)
    return Content::kKeyValue;
  if (place == Place::kAnswer && kind_ == AnswerKind::kRangeStream)
    return field == kPart ? Content::kPart : Content::kUnknown;
  if (place != Place::kAnswer && place != Place::kPart) return Content::kUnknown;
  if (field == kHeader) return Content::kHeader;
  switch (kind_) {
    case AnswerKind::kTxn:
      return field == txn_field::kResponses ? Content::kOperation : Content::kUnknown;
    case AnswerKind::kWatch:
      if (field == watch_field::kEvents) return Content::kEvent;
      return field == watch_field::kCancelReason ? Content::kText : Content::kUnknown;
    case AnswerKind::kAuthenticate:
      return field == kTokenField ? Content::kText : Content::kUnknown;
    case AnswerKind::kStatus:
      return field == kVersionField ? Content::kText : Content::kUnknown;
    case AnswerKind::kMembers:
      return field == kMemberField ? Content::kMember : Content::kUnknown;
    default:
      return Content::kUnknown;
  }
}

void MessageReader::take(Content content, std::string_view bytes) {
  switch (content) {
    case Content::kHeader:
      return header(bytes);
    case Content::kMember:
      return member(bytes);
    case Content::kEvent:
      return event(bytes);
    case Content::kKeyValue: {
      KeyValue kv;
      key_value(bytes, kv);
      if (error_.empty() && callbacks_.key_value) callbacks_.key_value(std::move(kv));
      return;
    }
    case Content::kText:
      (kind_ == AnswerKind::kWatch    ? message_.cancel_reason
       : kind_ == AnswerKind::kStatus ? message_.version
                                      : message_.token) = bytes;
      return;
    default:
      return;
  }
}

void MessageReader::number(std::uint64_t field, std::uint64_t value) {
  const Place place = levels_.back().place;
  if (place != (kind_ == AnswerKind::kRangeStream ? Place::kPart : Place::kAnswer)) return;
  switch (kind_) {
    case AnswerKind::kRange:
    case AnswerKind::kRangeStream:
      if (field == range_field::kMore) message_.more = value != 0;
      if (field == range_field::kCount) message_.count = static_cast<std::int64_t>(value);
      return;
    case AnswerKind::kTxn:
      if (field == txn_field::kSucceeded) message_.succeeded = value != 0;
      return;
    case AnswerKind::kWatch:
      return watch_number(field, value);
    case AnswerKind::kLease:
      if (field == lease_field::kId) message_.id = static_cast<std::int64_t>(value);
      if (field == lease_field::kTtl) message_.ttl = static_cast<std::int64_t>(value);
      return;
    default:
      return;
  }
}

void MessageReader::watch_number(std::uint64_t field, std::uint64_t value) {
  switch (field) {
    case watch_field::kWatchId:
      message_.watch_id = static_cast<std::int64_t>(value);
      return;
    case watch_field::kCreated:
      message_.created = value != 0;
      return;
    case watch_field::kCanceled:
      message_.canceled = value != 0;
      return;
    case watch_field::kCompactRevision:
      message_.compact_revision = revision(value);
      return;
    case watch_field::kFragment:
      message_.fragment = value != 0;
      return;
    default:
      return;
  }
}

/// Revisions are signed in etcd, and never negative.
Revision MessageReader::revision(std::uint64_t value) {
  if (static_cast<std::int64_t>(value) < 0) fail("a revision is negative");
  return static_cast<Revision>(value);
}

void MessageReader::header(std::string_view bytes) {
  const bool whole = for_each_field(bytes, [&](std::uint64_t field, const WireContent& content) {
    if (field == header_field::kClusterId) message_.cluster_id = content.number;
    if (field == header_field::kMemberId) message_.member_id = content.number;
    if (field == header_field::kRevision) message_.revision = revision(content.number);
  });
  if (!whole) fail("a header is malformed");
}

void MessageReader::member(std::string_view bytes) {
  std::vector<std::string> urls;
  bool learns = false;
  const bool whole = for_each_field(bytes, [&](std::uint64_t field, const WireContent& content) {
    if (field == kClientUrls) urls.emplace_back(content.bytes);
    if (field == kIsLearner) learns = content.number != 0;
  });
  if (!whole) fail("a member is malformed");
  if (learns) return;
  message_.client_urls.insert(message_.client_urls.end(), urls.begin(), urls.end());
}

void MessageReader::key_value(std::string_view bytes, KeyValue& out) {
  const bool whole = for_each_field(bytes, [&](std::uint64_t field, const WireContent& content) {
    switch (field) {
      case key_field::kKey:
        out.key = content.bytes;
        return;
      case key_field::kValue:
        out.value = content.bytes;
        return;
      case key_field::kCreateRevision:
        out.create_revision = revision(content.number);
        return;
      case key_field::kModRevision:
        out.mod_revision = revision(content.number);
        return;
      case key_field::kVersion:
        out.version = static_cast<std::int64_t>(content.number);
        return;
      case key_field::kLease:
        out.lease = static_cast<std::int64_t>(content.number);
        return;
      default:
        return;
    }
  });
  if (!whole) fail("a key with its value is malformed");
}

void MessageReader::event(std::string_view bytes) {
  KeyEvent out;
  const bool whole = for_each_field(bytes, [&](std::uint64_t field, const WireContent& content) {
    if (field == event_field::kType) out.deleted = content.number == event_field::kDelete;
    if (field == event_field::kKv) key_value(content.bytes, out.kv);
    if (field == event_field::kPrevious) key_value(content.bytes, out.previous.emplace());
  });
  if (!whole) fail("an event is malformed");
  if (!error_.empty()) return;
  ++message_.events;
  if (callbacks_.event) callbacks_.event(std::move(out));
}

std::string prefix_end(std::string prefix) {
  while (!prefix.empty()) {
    const auto last = static_cast<unsigned char>(prefix.back());
    if (last < 0xff) {
      prefix.back() = static_cast<char>(last + 1);
      return prefix;
    }
    prefix.pop_back();
  }
  // The range has no end.
  return std::string(1, '\0');
}

namespace {

/// Writes a message. Omits zero numbers and empty strings.
class Writer {
 public:
  Writer& number(std::uint64_t field, std::uint64_t value) {
    return value == 0 ? *this : explicit_number(field, value);
  }
  Writer& signed_number(std::uint64_t field, std::int64_t value) {
    return number(field, static_cast<std::uint64_t>(value));
  }
  Writer& flag(std::uint64_t field, bool value) { return number(field, value ? 1 : 0); }
  Writer& bytes(std::uint64_t field, std::string_view value) {
    return value.empty() ? *this : message(field, value);
  }
  /// Also writes empty strings and 0.
  Writer& message(std::uint64_t field, std::string_view value) {
    varint(field << 3 | api::detail::kBytes);
    varint(value.size());
    out_.append(value);
    return *this;
  }
  Writer& explicit_number(std::uint64_t field, std::uint64_t value) {
    varint(field << 3 | api::detail::kVarint);
    varint(value);
    return *this;
  }
  std::string finish() { return std::move(out_); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }

  std::string out_;
};

namespace compare_field {
constexpr std::uint64_t kTarget = 2, kKey = 3, kVersion = 4, kModRevision = 6;
constexpr std::uint64_t kTargetMod = 2;  // a target; that of the version, and "equal", are 0
}  // namespace compare_field

std::string range_of_key(std::string_view key) { return Writer().bytes(1, key).finish(); }

/// If `compare` holds for the key, executes `success`, else reads the key.
std::string transaction(std::string_view key, std::string_view compare, std::uint64_t operation,
                        std::string_view success) {
  const std::string then = Writer().message(operation, success).finish();
  const std::string otherwise =
      Writer().message(operation_field::kRange, range_of_key(key)).finish();
  return Writer().message(1, compare).message(2, then).message(3, otherwise).finish();
}

std::string unchanged_since(std::string_view key, Revision expected) {
  Writer out;
  out.number(compare_field::kTarget, compare_field::kTargetMod).bytes(compare_field::kKey, key);
  return out.explicit_number(compare_field::kModRevision, expected).finish();
}

}  // namespace

std::string encode(const RangeRequest& request) {
  Writer out;
  out.bytes(1, request.key).bytes(2, request.range_end).number(3, request.limit);
  out.number(4, request.revision).flag(8, request.keys_only).flag(9, request.count_only);
  return out.number(10, request.min_mod_revision).finish();
}

std::string encode(const WatchRequest& request) {
  Writer out;
  out.bytes(1, request.key).bytes(2, request.range_end).number(3, request.start_revision);
  out.flag(4, request.progress).flag(6, request.previous);
  // Fragments: etcd splits large responses, so that none exceeds its limit.
  out.flag(8, true);
  return Writer().message(1, out.finish()).finish();
}

std::string progress_request() { return Writer().message(3, {}).finish(); }

std::string put_request(std::string_view key, std::string_view value, std::int64_t lease) {
  return Writer().bytes(1, key).bytes(2, value).signed_number(3, lease).finish();
}

std::string delete_request(std::string_view key, std::string_view range_end) {
  return Writer().bytes(1, key).bytes(2, range_end).flag(3, true).finish();
}

std::string optimistic_put(std::string_view key, std::string_view value, Revision expected,
                           std::int64_t lease) {
  return transaction(key, unchanged_since(key, expected), operation_field::kPut,
                     put_request(key, value, lease));
}

std::string optimistic_delete(std::string_view key, Revision expected) {
  return transaction(key, unchanged_since(key, expected), operation_field::kDelete,
                     range_of_key(key));
}

std::string put_if_version(std::string_view key, std::string_view value, std::int64_t version) {
  Writer compare;
  compare.bytes(compare_field::kKey, key);
  compare.explicit_number(compare_field::kVersion, static_cast<std::uint64_t>(version));
  return transaction(key, compare.finish(), operation_field::kPut, put_request(key, value, 0));
}

std::string compaction_request(Revision revision) { return Writer().number(1, revision).finish(); }

std::string grant_request(std::int64_t ttl_seconds) {
  return Writer().signed_number(1, ttl_seconds).finish();
}

std::string lease_request(std::int64_t id) { return Writer().signed_number(1, id).finish(); }

/// Linearizable (etcd from 3.5 on): not older than the last change of the members.
std::string member_list_request() { return Writer().flag(1, true).finish(); }

std::string authenticate_request(std::string_view name, std::string_view password) {
  return Writer().bytes(1, name).bytes(2, password).finish();
}

}  // namespace lookout::apiserver::storage::etcd3
