// The messages of etcd's JSON gateway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/storage/etcd3/json_tokens.h"
#include "lookout/api/error.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage::etcd3 {

/// etcd's answer to a request that it did not carry out.
class EtcdError : public Error {
 public:
  /// Those of gRPC's codes that matter here.
  enum Code {
    kCancelled = 1,
    kUnknown = 2,
    kInvalidArgument = 3,
    kDeadlineExceeded = 4,
    kNotFound = 5,
    kPermissionDenied = 7,
    kFailedPrecondition = 9,
    kOutOfRange = 11,
    kInternal = 13,
    kUnavailable = 14,
    kUnauthenticated = 16
  };

  EtcdError(int code, std::string message, Revision compact_revision = 0)
      : Error(message), code_(code), compact_revision_(compact_revision) {}

  int code() const { return code_; }
  /// For a watch that was ended by a compaction: watches may begin here.
  Revision compact_revision() const { return compact_revision_; }
  bool is_compacted() const;
  bool is_future_revision() const;
  bool is_no_leader() const;
  /// Nothing is wrong with the request: the member could not answer it, or was about to end. (The
  /// gateway loses its connection to the member then, and says so in its own words.)
  bool is_transient() const;
  /// A token that is missing or no longer good.
  bool is_bad_token() const;
  bool is_permission_denied() const;

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
  /// How often it has been put since its creation.
  std::int64_t version = 0;
  std::int64_t lease = 0;
};

/// mvccpb.Event.
struct KeyEvent {
  bool deleted = false;
  KeyValue kv;
  /// Nothing if the key was not there before.
  std::optional<KeyValue> previous = {};
};

/// An answer, or one frame of a watch, but for keys and values.
struct Message {
  std::uint64_t cluster_id = 0;
  std::uint64_t member_id = 0;
  Revision revision = 0;
  std::int64_t count = 0;
  bool more = false;
  bool succeeded = false;
  // Watches.
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

/// Reads answers as they come in. Keys, values and events are handed out one by one; nothing else
/// of an answer is large. Not thread-safe; callbacks run inside feed().
class MessageReader final : private JsonTokens::Handler {
 public:
  struct Callbacks {
    /// For a range, or for the result of a transaction.
    std::function<void(KeyValue)> key_value = {};
    std::function<void(KeyEvent)> event = {};
    /// At the end of each answer or frame.
    std::function<void(Message)> message = {};
  };

  explicit MessageReader(Callbacks callbacks, std::size_t max_value_bytes = kMaxValueBytes);

  /// Values are 1.5 MB at most unless an etcd was told otherwise.
  static constexpr std::size_t kMaxValueBytes = 128u << 20;

  /// False when it is no answer of an etcd; error() says why.
  bool feed(std::string_view bytes);
  bool complete() const { return tokens_.complete(); }
  const std::string& error() const { return error_.empty() ? tokens_.error() : error_; }

 private:
  enum class Place {
    kRoot,
    kResult,
    kError,
    kHeader,
    kKeyValue,
    kPrevious,
    kEvent,
    kMember,
    kOther
  };

  void begin_object() override;
  void end_object() override;
  void begin_array() override;
  void end_array() override;
  void key(std::string_view name) override;
  void string(std::string& text) override;
  void literal(std::string_view text) override { scalar(text); }
  void end_value() override;

  Place place_of_child() const;
  void scalar(std::string_view text);
  void failure(const std::string& name, std::string_view text);
  void bytes(std::string& out, std::string_view text);
  template <class Number>
  void number(Number& out, std::string_view text);

  struct Level {
    Place place = Place::kOther;
    bool array = false;
    std::string name = {};  // of the member that is being read
  };

  Callbacks callbacks_;
  JsonTokens tokens_;
  std::vector<Level> levels_;
  Message message_;
  KeyValue key_value_;
  KeyEvent event_;
  bool in_event_ = false;
  std::string error_;
};

/// The key behind all that begin with `prefix`: the end of the range.
std::string prefix_end(std::string prefix);

// Requests, as JSON.

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
std::string to_json(const RangeRequest& request);

struct WatchRequest {
  std::string key;
  std::string range_end = {};
  Revision start_revision = 0;
  bool previous = true;
  bool progress = false;
};
std::string to_json(const WatchRequest& request);

std::string put_request(std::string_view key, std::string_view value, std::int64_t lease);
std::string delete_request(std::string_view key, std::string_view range_end);
/// Puts a value if the key was last changed at `expected` (0: is not there), else gives what is
/// there.
std::string optimistic_put(std::string_view key, std::string_view value, Revision expected,
                           std::int64_t lease);
std::string optimistic_delete(std::string_view key, Revision expected);
/// Puts a value if the key has been put `version` times.
std::string put_if_version(std::string_view key, std::string_view value, std::int64_t version);

}  // namespace lookout::apiserver::storage::etcd3
