// The messages of etcd's gRPC services (etcdserverpb, mvccpb), as far as they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage::etcd3 {

/// etcd's error response.
class EtcdError : public Error {
 public:
  /// The relevant gRPC codes.
  enum Code {
    kCancelled = 1,
    kUnknown = 2,
    kInvalidArgument = 3,
    kDeadlineExceeded = 4,
    kNotFound = 5,
    kPermissionDenied = 7,
    kResourceExhausted = 8,
    kFailedPrecondition = 9,
    kOutOfRange = 11,
    kUnimplemented = 12,
    kInternal = 13,
    kUnavailable = 14,
    kUnauthenticated = 16
  };

  EtcdError(int code, std::string message, Revision compact_revision = 0)
      : Error(message), code_(code), compact_revision_(compact_revision) {}

  int code() const { return code_; }
  /// If a compaction has ended a watch: the first revision from which a watch may start.
  Revision compact_revision() const { return compact_revision_; }
  bool is_compacted() const;
  bool is_future_revision() const;
  bool is_no_leader() const;
  /// The member is a learner, which has not started the request.
  bool is_learner() const;
  /// An error of the member, not of the request: another member may succeed.
  bool is_transient() const;
  /// A token that is missing or no longer valid, or is_old_auth_revision().
  bool is_bad_token() const;
  /// Users or roles have changed during the request, which was not executed.
  bool is_old_auth_revision() const;
  bool is_permission_denied() const;
  /// Authentication is disabled in etcd, so there are no tokens.
  bool is_auth_not_enabled() const;

 private:
  int code_;
  Revision compact_revision_;
};

/// mvccpb.KeyValue.
struct KeyValue {
  std::string key;
  std::string value;
  Revision create_revision = 0;
  Revision mod_revision = 0;
  /// The number of puts since its creation.
  std::int64_t version = 0;
  std::int64_t lease = 0;
};

/// mvccpb.Event.
struct KeyEvent {
  bool deleted = false;
  KeyValue kv;
  /// nullopt if the key did not exist before.
  std::optional<KeyValue> previous = {};
};

/// A response, or one frame of a watch, without keys and values.
struct Message {
  std::uint64_t cluster_id = 0;
  std::uint64_t member_id = 0;
  Revision revision = 0;
  std::int64_t count = 0;
  bool more = false;
  bool succeeded = false;
  // Watches.
  std::int64_t watch_id = 0;
  bool created = false;
  bool canceled = false;
  bool fragment = false;
  Revision compact_revision = 0;
  std::string cancel_reason = {};
  std::size_t events = 0;
  // Others.
  std::string token = {};
  std::int64_t id = 0;
  std::int64_t ttl = 0;
  std::string version = {};
  std::vector<std::string> client_urls = {};
  // Failures.
  bool failed = false;
  int code = EtcdError::kUnknown;
  std::string error = {};

  EtcdError failure() const;
};

/// The kinds of responses. The same field number has different meanings in each.
enum class AnswerKind {
  kRange,
  kRangeStream,  ///< parts of a range response
  kPut,
  kDelete,
  kTxn,
  kCompact,
  kWatch,
  kLease,  ///< granted, kept alive or revoked
  kAuthenticate,
  kStatus,
  kMembers
};

/// Parses the responses of a call incrementally: protobuf messages, each after gRPC's head. Keys, values
/// and events are delivered one by one, so that a message may be larger than memory. Not thread-safe;
/// callbacks run in feed().
class MessageReader {
 public:
  struct Callbacks {
    /// For a range, or for the result of a transaction.
    std::function<void(KeyValue)> key_value = {};
    std::function<void(KeyEvent)> event = {};
    /// At the end of each message.
    std::function<void(Message)> message = {};
  };

  MessageReader(AnswerKind kind, Callbacks callbacks, std::size_t max_value_bytes = kMaxValueBytes,
                std::size_t max_message_bytes = std::numeric_limits<std::uint32_t>::max());

  /// By default, etcd's values have at most 1.5 MB.
  static constexpr std::size_t kMaxValueBytes = 128u << 20;

  /// False if the response is malformed; then error() is set.
  bool feed(std::string_view bytes);
  /// Whether the input is at the end of a message or at the start.
  bool complete() const { return levels_.empty() && buffer_.empty(); }
  const std::string& error() const { return error_; }
  /// Whether the error is that a message is larger than `max_message_bytes`.
  bool is_too_large() const { return too_large_; }

 private:
  /// Which message a field belongs to.
  enum class Place { kAnswer, kPart, kOperation, kRangeInTxn, kPutInTxn, kDeleteInTxn };
  /// The content of a field of bytes.
  enum class Content { kUnknown, kHeader, kKeyValue, kEvent, kPart, kOperation, kText, kMember };
  struct Level {
    Place place;
    std::uint64_t left;  // unread bytes
  };

  bool step(std::string_view& bytes);
  bool begin_message(std::string_view& bytes);
  bool end_level();
  bool read_bytes(std::string_view& bytes, std::uint64_t field, std::size_t head,
                  std::uint64_t size);
  bool enter(std::uint64_t field, std::uint64_t size);
  Content content_of(std::uint64_t field) const;
  void take(Content content, std::string_view bytes);
  void number(std::uint64_t field, std::uint64_t value);
  void watch_number(std::uint64_t field, std::uint64_t value);
  void header(std::string_view bytes);
  void member(std::string_view bytes);
  void key_value(std::string_view bytes, KeyValue& out);
  void event(std::string_view bytes);
  Revision revision(std::uint64_t value);
  bool fail(std::string why);

  const AnswerKind kind_;
  const Callbacks callbacks_;
  const std::size_t max_value_bytes_;
  const std::size_t max_message_bytes_;
  std::vector<Level> levels_;
  std::string buffer_;      // the beginning of an element
  std::size_t needed_ = 0;  // its size, if known
  std::uint64_t skip_ = 0;  // bytes to skip
  Message message_;
  std::string error_;
  bool too_large_ = false;
};

/// The end of the range of keys with this prefix.
std::string prefix_end(std::string prefix);

// Requests, as messages.

struct RangeRequest {
  std::string key;
  /// Empty: the key alone.
  std::string range_end = {};
  std::size_t limit = 0;
  /// 0: the newest.
  Revision revision = 0;
  bool keys_only = false;
  bool count_only = false;
  Revision min_mod_revision = 0;
};
std::string encode(const RangeRequest& request);

struct WatchRequest {
  std::string key;
  std::string range_end = {};
  Revision start_revision = 0;
  bool previous = true;
  bool progress = false;
};
std::string encode(const WatchRequest& request);
/// Requests a progress notification for the watches of a stream.
std::string progress_request();

std::string put_request(std::string_view key, std::string_view value, std::int64_t lease);
std::string delete_request(std::string_view key, std::string_view range_end);
/// Puts a value if the key was last changed at `expected` (0: does not exist), else reads the key.
std::string optimistic_put(std::string_view key, std::string_view value, Revision expected,
                           std::int64_t lease);
std::string optimistic_delete(std::string_view key, Revision expected);
/// Puts a value if the key has this `version`.
std::string put_if_version(std::string_view key, std::string_view value, std::int64_t version);
std::string compaction_request(Revision revision);
std::string grant_request(std::int64_t ttl_seconds);
/// A request about a lease: a keep-alive or a revocation.
std::string lease_request(std::int64_t id);
std::string member_list_request();
std::string authenticate_request(std::string_view name, std::string_view password);

}  // namespace lookout::apiserver::storage::etcd3
