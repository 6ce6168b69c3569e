// The Kubernetes protobuf encoding (application/vnd.kubernetes.protobuf) of the built-in kinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "lookout/api/stream_decoder.h"
#include "lookout/api/watch.h"
#include "lookout/base/attributes.h"
#include "lookout/base/pinned.h"

namespace lookout::api {

inline constexpr std::string_view kProtobufMediaType = "application/vnd.kubernetes.protobuf";
/// Every object in this encoding begins with these bytes.
inline constexpr std::string_view kProtobufMagic{"k8s\0", 4};

/// True if `bytes` start with kProtobufMagic.
inline bool is_protobuf(std::string_view bytes) { return bytes.starts_with(kProtobufMagic); }

/// True if objects of this type have a protobuf encoding. The built-in kinds of schema_version()
/// and PartialObjectMetadata have one; custom resources do not.
bool has_protobuf(std::string_view api_version, std::string_view kind);

/// Decodes single objects of the built-in kinds. Reusable (the buffers stay between calls), not
/// thread-safe.
///
/// The result equals, byte for byte, what JsonDecoder makes of the JSON that an API server of
/// schema_version() sends: fields that Go's encoding/json omits are absent, and empty fields that
/// it writes are present. (Older servers write creation times of templates as null.) Fields that
/// the schema does not know, such as those of a newer server, are lost, because their names are
/// unknown; unknown_fields() reports them.
///
/// Bytes that are not UTF-8 become U+FFFD, as in Go. If a scalar occurs several times, the last one
/// counts. A message that occurs several times is refused: protobuf would merge it, and no
/// Kubernetes encoder writes it.
class ProtobufDecoder : public base::Pinned {
 public:
  explicit ProtobufDecoder(Projection projection = {});
  ~ProtobufDecoder();

  /// Decodes one object in its envelope: the magic bytes and a runtime.Unknown that names its type.
  /// Returns an empty handle if the bytes are malformed, the kind is not built in, or the object is
  /// nested deeper than 1000 levels. error() then gives the reason and the field
  /// ("PodSpec.containers: ...").
  Object decode(std::string_view bytes);

  /// Decodes an object without an envelope, such as an item of a list.
  Object decode_item(std::string_view api_version, std::string_view kind, std::string_view bytes);

  /// Decodes one watch event, without its length prefix of four bytes. Projections do not
  /// apply to errors and bookmarks.
  std::optional<WatchEvent> decode_event(std::string_view bytes);

  const std::string& error() const LOOKOUT_LIFETIME_BOUND;

  /// The unknown fields that the last object lost. Fields that the projection drops do not count.
  const UnknownFields& unknown_fields() const LOOKOUT_LIFETIME_BOUND;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Decodes list bodies in protobuf: an envelope around a list of a built-in kind, or around a
/// PartialObjectMetadataList.
class ProtobufListDecoder final : public ListDecoderOfEncoding {
 public:
  ProtobufListDecoder(const StreamOptions& options, OnItem on_item, OnMalformed on_malformed);
};

/// Decodes watch bodies in protobuf: each frame is the length of an event in four big-endian bytes,
/// followed by the event.
class ProtobufWatchDecoder final : public DecoderOfEncoding<WatchDecoder> {
 public:
  ProtobufWatchDecoder(const StreamOptions& options, OnEvent on_event, OnMalformed on_malformed);
};

/// The metadata of an encoded list.
struct ProtobufListMeta {
  std::string_view resource_version;
  std::string_view continue_token = {};
  std::optional<std::int64_t> remaining_item_count = {};
};

/// Encodes objects of the built-in kinds byte for byte as Kubernetes' generated code does: fields
/// in the order of their numbers, map keys sorted, zeros written where Go has no pointer. Reusable
/// (the buffers stay between calls), not thread-safe.
///
/// A field without a number cannot be encoded. The encoder omits and counts fields that the schema
/// does not know and values of the wrong type. It then adds a field with a number that no schema
/// uses: a reader that must not lose data (StreamOptions::lossless) sees it and asks for the object
/// in JSON; other readers skip it.
class ProtobufEncoder : public base::Pinned {
 public:
  ProtobufEncoder();
  ~ProtobufEncoder();

  /// Appends the object in its envelope. Returns false and appends nothing if its type has no
  /// protobuf encoding.
  bool encode(const Object& object, std::string& out);

  /// Appends the object as one frame of a watch, with its length prefix.
  bool encode_event(EventType type, const Object& object, std::string& out);

  /// Writes a list in three parts: the head, which takes the total number of bytes that
  /// encode_list_item() will append for all items; the items, all encoded as the given type,
  /// whatever their own kind says; and the tail.
  bool encode_list_head(std::string_view api_version, std::string_view list_kind,
                        const ProtobufListMeta& meta, std::size_t items_size, std::string& out);
  void encode_list_item(std::string_view api_version, std::string_view kind, const Object& object,
                        std::string& out);
  static void encode_list_tail(std::string& out);

  /// The number of fields, over all objects, that could not be encoded.
  std::size_t left_out() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::api
