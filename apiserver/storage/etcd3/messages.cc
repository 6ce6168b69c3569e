#include "apiserver/storage/etcd3/messages.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <charconv>
#include <utility>

#include "lookout/base/base64.h"

namespace lookout::apiserver::storage::etcd3 {

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

bool EtcdError::is_transient() const {
  return code_ == kUnavailable || code_ == kCancelled || code_ == kDeadlineExceeded ||
         code_ == kInternal;
}

bool EtcdError::is_bad_token() const {
  const std::string_view text = what();
  return code_ == kUnauthenticated || text.find("invalid auth token") != std::string_view::npos ||
         text.find("revision of auth store is old") != std::string_view::npos ||
         text.find("user name is empty") != std::string_view::npos;
}

bool EtcdError::is_permission_denied() const {
  return code_ == kPermissionDenied ||
         std::string_view(what()).find("etcdserver: permission denied") != std::string_view::npos;
}

EtcdError Message::failure() const {
  if (failed) return {code, error.empty() ? "etcd gives no reason" : error};
  if (compact_revision != 0) {
    return {EtcdError::kOutOfRange, "etcdserver: mvcc: required revision has been compacted",
            compact_revision};
  }
  return {EtcdError::kUnknown, cancel_reason.empty() ? "etcd ended the watch" : cancel_reason};
}

MessageReader::MessageReader(Callbacks callbacks, std::size_t max_value_bytes)
    : callbacks_(std::move(callbacks)), tokens_(*this, max_value_bytes / 3 * 4 + 16) {}

bool MessageReader::feed(std::string_view bytes) {
  return error_.empty() && tokens_.feed(bytes) && error_.empty();
}

// Where an object is tells what it is. Headers are repeated within transactions: only the outermost
// one counts.
MessageReader::Place MessageReader::place_of_child() const {
  if (levels_.empty()) return Place::kRoot;
  const Level& parent = levels_.back();
  const std::string& name = parent.name;
  const bool outermost = parent.place == Place::kRoot || parent.place == Place::kResult;
  if (name == "kvs" || name == "prev_kvs" || name == "kv")
    return parent.place == Place::kEvent || !in_event_ ? Place::kKeyValue : Place::kOther;
  if (name == "prev_kv") return in_event_ ? Place::kPrevious : Place::kKeyValue;
  if (!outermost) return Place::kOther;
  if (name == "events") return Place::kEvent;
  if (name == "header" && !parent.array) return Place::kHeader;
  if (name == "members") return Place::kMember;
  if (parent.place != Place::kRoot) return Place::kOther;
  if (name == "result") return Place::kResult;
  if (name == "error") return Place::kError;
  return Place::kOther;
}

void MessageReader::begin_object() {
  const Place place = place_of_child();
  levels_.push_back({place});
  switch (place) {
    case Place::kEvent:
      event_ = {};
      in_event_ = true;
      break;
    case Place::kKeyValue:
    case Place::kPrevious:
      key_value_ = {};
      break;
    case Place::kError:
      message_.failed = true;
      break;
    default:
      break;
  }
}

void MessageReader::end_object() {
  const Place place = levels_.back().place;
  levels_.pop_back();
  switch (place) {
    case Place::kEvent:
      in_event_ = false;
      ++message_.events;
      if (callbacks_.event && error_.empty()) callbacks_.event(std::move(event_));
      break;
    case Place::kKeyValue:
      if (in_event_) {
        event_.kv = std::move(key_value_);
      } else if (callbacks_.key_value && error_.empty()) {
        callbacks_.key_value(std::move(key_value_));
      }
      break;
    case Place::kPrevious:
      event_.previous = std::move(key_value_);
      break;
    default:
      break;
  }
}

void MessageReader::begin_array() {
  // The elements are what their array is called, where it is.
  const Level parent = levels_.empty() ? Level{} : levels_.back();
  levels_.push_back({parent.place, true, parent.name});
}

void MessageReader::end_array() { levels_.pop_back(); }

void MessageReader::key(std::string_view name) { levels_.back().name = name; }

void MessageReader::end_value() {
  if (callbacks_.message && error_.empty()) callbacks_.message(std::exchange(message_, {}));
  message_ = {};
}

void MessageReader::bytes(std::string& out, std::string_view text) {
  auto decoded = decode_base64(text);
  if (!decoded) {
    error_ = "a key or a value is not base64";
    return;
  }
  out = std::move(*decoded);
}

template <class Number>
void MessageReader::number(Number& out, std::string_view text) {
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, out);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    error_ = fmt::format("\"{}\" is not a number", text.substr(0, 40));
}

void MessageReader::string(std::string& text) { scalar(text); }

void MessageReader::scalar(std::string_view text) {
  if (levels_.empty()) return;
  const Level& level = levels_.back();
  const std::string& name = level.name;
  switch (level.place) {
    case Place::kKeyValue:
    case Place::kPrevious:
      if (name == "key") {
        bytes(key_value_.key, text);
      } else if (name == "value") {
        bytes(key_value_.value, text);
      } else if (name == "mod_revision") {
        number(key_value_.mod_revision, text);
      } else if (name == "create_revision") {
        number(key_value_.create_revision, text);
      } else if (name == "version") {
        number(key_value_.version, text);
      } else if (name == "lease") {
        number(key_value_.lease, text);
      }
      return;
    case Place::kEvent:
      if (name == "type") event_.deleted = text == "DELETE" || text == "1";
      return;
    case Place::kHeader:
      if (name == "revision") {
        number(message_.revision, text);
      } else if (name == "cluster_id") {
        number(message_.cluster_id, text);
      } else if (name == "member_id") {
        number(message_.member_id, text);
      }
      return;
    case Place::kMember:
      if (name == "clientURLs") message_.client_urls.emplace_back(text);
      return;
    case Place::kError:
      if (name == "message") {
        message_.error = text;
      } else if (name == "grpc_code" || name == "code") {
        number(message_.code, text);
      }
      return;
    case Place::kRoot:
    case Place::kResult:
      if (name == "more") {
        message_.more = text == "true";
      } else if (name == "count") {
        number(message_.count, text);
      } else if (name == "succeeded") {
        message_.succeeded = text == "true";
      } else if (name == "created") {
        message_.created = text == "true";
      } else if (name == "canceled") {
        message_.canceled = text == "true";
      } else if (name == "fragment") {
        message_.fragment = text == "true";
      } else if (name == "compact_revision") {
        number(message_.compact_revision, text);
      } else if (name == "cancel_reason") {
        message_.cancel_reason = text;
      } else if (name == "token") {
        message_.token = text;
      } else if (name == "ID") {
        number(message_.id, text);
      } else if (name == "TTL") {
        number(message_.ttl, text);
      } else if (name == "version") {
        message_.version = text;
      } else if (level.place == Place::kRoot) {
        failure(name, text);
      }
      return;
    case Place::kOther:
      return;
  }
}

/// A request that failed: {"error":...,"message":...,"code":...} up to etcd 3.5, where both texts
/// are the same; {"code":...,"message":...,"details":[...]} (a google.rpc.Status) from 3.6 on.
void MessageReader::failure(const std::string& name, std::string_view text) {
  if (name == "error") {
    message_.failed = true;
    message_.error = text;
  } else if (name == "message") {
    message_.failed = true;
    if (message_.error.empty()) message_.error = text;
  } else if (name == "code") {
    message_.failed = true;
    number(message_.code, text);
  }
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
  // To the end of everything.
  return std::string(1, '\0');
}

namespace {

/// One request. Numbers are written as texts, as the gateway does.
class Request {
 public:
  Request() { writer_.StartObject(); }
  Request& bytes(const char* name, std::string_view value) {
    return text(name, encode_base64(value));
  }
  Request& text(const char* name, std::string_view value) {
    writer_.Key(name);
    writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
    return *this;
  }
  template <class Number>
  Request& number(const char* name, Number value) {
    return value == 0 ? *this : text(name, std::to_string(value));
  }
  Request& flag(const char* name, bool value) {
    if (!value) return *this;
    writer_.Key(name);
    writer_.Bool(true);
    return *this;
  }
  Request& object(const char* name) {
    writer_.Key(name);
    writer_.StartObject();
    return *this;
  }
  Request& array_of_one(const char* name) {
    writer_.Key(name);
    writer_.StartArray();
    writer_.StartObject();
    return *this;
  }
  Request& end() {
    writer_.EndObject();
    return *this;
  }
  Request& end_array() {
    writer_.EndObject();
    writer_.EndArray();
    return *this;
  }
  std::string finish() {
    writer_.EndObject();
    return {buffer_.GetString(), buffer_.GetSize()};
  }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace

std::string to_json(const RangeRequest& request) {
  Request out;
  out.bytes("key", request.key);
  if (!request.range_end.empty()) out.bytes("range_end", request.range_end);
  out.number("limit", request.limit).number("revision", request.revision);
  out.flag("keys_only", request.keys_only).flag("count_only", request.count_only);
  out.number("min_mod_revision", request.min_mod_revision);
  return out.finish();
}

std::string to_json(const WatchRequest& request) {
  Request out;
  out.object("create_request").bytes("key", request.key);
  if (!request.range_end.empty()) out.bytes("range_end", request.range_end);
  out.number("start_revision", request.start_revision);
  out.flag("prev_kv", request.previous).flag("progress_notify", request.progress);
  // Large answers in several frames, so that no frame grows beyond what gRPC takes.
  out.flag("fragment", true);
  return out.end().finish();
}

std::string put_request(std::string_view key, std::string_view value, std::int64_t lease) {
  Request out;
  out.bytes("key", key).bytes("value", value).number("lease", lease);
  return out.finish();
}

std::string delete_request(std::string_view key, std::string_view range_end) {
  Request out;
  out.bytes("key", key);
  if (!range_end.empty()) out.bytes("range_end", range_end);
  return out.flag("prev_kv", true).finish();
}

std::string optimistic_put(std::string_view key, std::string_view value, Revision expected,
                           std::int64_t lease) {
  Request out;
  out.array_of_one("compare").bytes("key", key).text("target", "MOD").text("result", "EQUAL");
  out.text("mod_revision", std::to_string(expected)).end_array();
  out.array_of_one("success").object("request_put").bytes("key", key).bytes("value", value);
  out.number("lease", lease).end().end_array();
  out.array_of_one("failure").object("request_range").bytes("key", key).end().end_array();
  return out.finish();
}

std::string optimistic_delete(std::string_view key, Revision expected) {
  Request out;
  out.array_of_one("compare").bytes("key", key).text("target", "MOD").text("result", "EQUAL");
  out.text("mod_revision", std::to_string(expected)).end_array();
  out.array_of_one("success").object("request_delete_range").bytes("key", key).end().end_array();
  out.array_of_one("failure").object("request_range").bytes("key", key).end().end_array();
  return out.finish();
}

std::string put_if_version(std::string_view key, std::string_view value, std::int64_t version) {
  Request out;
  out.array_of_one("compare").bytes("key", key).text("target", "VERSION").text("result", "EQUAL");
  out.text("version", std::to_string(version)).end_array();
  out.array_of_one("success").object("request_put").bytes("key", key).bytes("value", value);
  out.end().end_array();
  out.array_of_one("failure").object("request_range").bytes("key", key).end().end_array();
  return out.finish();
}

}  // namespace lookout::apiserver::storage::etcd3
