// Decoding JSON: single objects, list bodies and watch bodies, the latter two as the bytes come in.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "lookout/api/watch.h"

namespace lookout::api {

/// The default limit for a single object in a stream. An API server takes requests up to 3 MB; this
/// leaves room for what other servers may do and keeps a hostile one from filling the memory.
inline constexpr std::size_t kDefaultMaxObjectBytes = 128u << 20;

/// Decodes single objects. Reusable (the buffers stay between calls), not thread-safe.
class JsonDecoder {
 public:
  explicit JsonDecoder(Projection projection = {});
  ~JsonDecoder();
  JsonDecoder(const JsonDecoder&) = delete;
  JsonDecoder& operator=(const JsonDecoder&) = delete;

  /// Gives objects that come without apiVersion and kind these (as the items of a typed list do).
  void set_default_type(std::string api_version, std::string kind);

  /// Decodes one JSON object, using `json` as working space: its content is lost. Returns an empty
  /// handle when the text is malformed, is no object, is nested deeper than 1000 levels, is not
  /// UTF-8 or has a number far beyond the range of a double (1e400); error() then says why and at
  /// which byte.
  Object decode(std::string& json);
  const std::string& error() const;

  /// For the stream decoders: one watch event, `{"type":...,"object":{...}}`. Nothing when
  /// malformed. Errors and bookmarks are kept whole whatever the projection.
  std::optional<WatchEvent> decode_event(std::string& json);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// An object in a stream that could not be decoded. The stream goes on behind it.
struct MalformedObject {
  std::string reason;   ///< why, and at which byte of the object
  std::string excerpt;  ///< how the object began, for the log
  std::size_t bytes = 0;
};

struct StreamOptions {
  Projection projection;
  std::size_t max_object_bytes = kDefaultMaxObjectBytes;
  /// The type that the caller asked for; given to items that come without one.
  std::string api_version = {};
  std::string kind = {};
};

/// Takes a list body piece by piece and hands out each item as soon as its last byte is there.
/// Holds at most one item, however the pieces are cut and however long the list is. Not
/// thread-safe; callbacks run inside feed().
class JsonListDecoder {
 public:
  using OnItem = std::function<void(Object)>;
  using OnMalformed = std::function<void(const MalformedObject&)>;

  JsonListDecoder(StreamOptions options, OnItem on_item, OnMalformed on_malformed);
  ~JsonListDecoder();
  JsonListDecoder(const JsonListDecoder&) = delete;
  JsonListDecoder& operator=(const JsonListDecoder&) = delete;

  /// Returns false when the text cannot be a list; error() says why and further input is ignored.
  bool feed(std::string_view bytes);
  /// To be called at the end of the body: true if the list came whole. When false, error() says
  /// what is missing.
  bool finish();
  const std::string& error() const;

  /// Of the list itself, known after finish() at the latest.
  std::string_view api_version() const;
  std::string_view kind() const;
  std::string_view resource_version() const;
  std::string_view continue_token() const;
  std::optional<std::int64_t> remaining_item_count() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Takes a watch body piece by piece and hands out each event as soon as its last byte is there.
/// Holds at most one event. Not thread-safe; callbacks run inside feed().
class JsonWatchDecoder {
 public:
  using OnEvent = std::function<void(WatchEvent)>;
  using OnMalformed = std::function<void(const MalformedObject&)>;

  JsonWatchDecoder(StreamOptions options, OnEvent on_event, OnMalformed on_malformed);
  ~JsonWatchDecoder();
  JsonWatchDecoder(const JsonWatchDecoder&) = delete;
  JsonWatchDecoder& operator=(const JsonWatchDecoder&) = delete;

  /// Returns false when the text cannot be a sequence of JSON objects; error() says why and further
  /// input is ignored.
  bool feed(std::string_view bytes);
  /// To be called at the end of the body: false if it ended in the middle of an event.
  bool finish();
  const std::string& error() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::api
