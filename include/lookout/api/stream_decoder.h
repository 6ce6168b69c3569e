// List and watch bodies, decoded while they come in: what the encodings have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// An object in a stream that could not be decoded. The stream goes on behind it.
struct MalformedObject {
  std::string reason;   ///< why, and at which byte of the object
  std::string excerpt;  ///< how the object began, for the log
  std::size_t bytes = 0;
};

struct StreamOptions {
  Projection projection = {};
  std::size_t max_object_bytes = kDefaultMaxObjectBytes;
  /// The type that the caller asked for; given to items that come without one.
  std::string api_version = {};
  std::string kind = {};
  /// For encodings that cannot carry what the schema of this library does not know (protobuf): end
  /// the stream, by an error, before an object that would lose something or cannot be decoded.
  bool lossless = false;
};

/// Fields that an object had and that are lost.
struct UnknownFields {
  std::size_t count = 0;
  std::string first = {};  ///< "field 99 of PodSpec"
};

/// Takes a list body piece by piece and hands out each item as soon as its last byte is there.
/// Holds at most one item, however the pieces are cut and however long the list is. Not
/// thread-safe; callbacks run inside feed().
class ListDecoder {
 public:
  using OnItem = std::function<void(Object)>;
  using OnMalformed = std::function<void(const MalformedObject&)>;

  virtual ~ListDecoder() = default;

  /// Returns false when the body cannot be a list; error() says why and further input is ignored.
  virtual bool feed(std::string_view bytes) = 0;
  /// To be called at the end of the body: true if the list came whole. When false, error() says
  /// what is missing.
  virtual bool finish() = 0;
  virtual const std::string& error() const = 0;

  /// Of the list itself, known after finish() at the latest.
  virtual std::string_view api_version() const = 0;
  virtual std::string_view kind() const = 0;
  virtual std::string_view resource_version() const = 0;
  virtual std::string_view continue_token() const = 0;
  virtual std::optional<std::int64_t> remaining_item_count() const = 0;

  /// What all items so far have lost. JSON loses nothing.
  virtual UnknownFields unknown_fields() const { return {}; }
  /// Whether the stream ended because of StreamOptions::lossless.
  virtual bool would_lose() const { return false; }
};

/// Takes a watch body piece by piece and hands out each event as soon as its last byte is there.
/// Holds at most one event. Not thread-safe; callbacks run inside feed().
class WatchDecoder {
 public:
  using OnEvent = std::function<void(WatchEvent)>;
  using OnMalformed = std::function<void(const MalformedObject&)>;

  virtual ~WatchDecoder() = default;

  /// Returns false when the body cannot be a sequence of events; error() says why and further input
  /// is ignored.
  virtual bool feed(std::string_view bytes) = 0;
  /// To be called at the end of the body: false if it ended in the middle of an event.
  virtual bool finish() = 0;
  virtual const std::string& error() const = 0;

  /// As those of ListDecoder.
  virtual UnknownFields unknown_fields() const { return {}; }
  virtual bool would_lose() const { return false; }
};

}  // namespace lookout::api
