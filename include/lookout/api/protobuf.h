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

namespace lookout::api {

inline constexpr std::string_view kProtobufMediaType = "application/vnd.kubernetes.protobuf";
/// Every object in this encoding begins with these bytes.
inline constexpr std::string_view kProtobufMagic{"k8s\0", 4};

/// Whether `bytes` begin as an object in this encoding does.
inline bool is_protobuf(std::string_view bytes) { return bytes.starts_with(kProtobufMagic); }

/// Whether objects of this type have a protobuf encoding: the built-in kinds of schema_version()
/// and PartialObjectMetadata have, custom resources have not.
bool has_protobuf(std::string_view api_version, std::string_view kind);

/// Decodes single objects of the built-in kinds. Reusable (the buffers stay between calls), not
/// thread-safe.
///
/// The object is the one, byte for byte, that JsonDecoder makes of the JSON that an API server of
/// schema_version() sends for it: what Go's encoding/json leaves out or writes although it is empty
/// is left out and written here. (Older servers write creation times of templates as null.) Fields
/// that the schema does not know, as those of a newer server, are lost: without the schema they
/// have no names. unknown_fields() tells.
///
/// Text that is not UTF-8 gets U+FFFD in place of the wrong bytes, as it does in Go. If a
/// scalar is given several times, the last one counts. A message that is given several times is
/// refused: protobuf would merge it, and no Kubernetes encoder writes it.
class ProtobufDecoder {
 public:
  explicit ProtobufDecoder(Projection projection = {});
  ~ProtobufDecoder();
  ProtobufDecoder(const ProtobufDecoder&) = delete;
  ProtobufDecoder& operator=(const ProtobufDecoder&) = delete;

  /// Decodes one object in its envelope: the magic bytes and a runtime.Unknown that names its type.
  /// Returns an empty handle when the bytes are malformed, the kind is not a built-in one or the
  /// object is nested deeper than 1000 levels; error() then says why, and in which field of which
  /// message ("PodSpec.containers: ...").
  Object decode(std::string_view bytes);

  /// The same for an object without an envelope, as the items of a list are.
  Object decode_item(std::string_view api_version, std::string_view kind, std::string_view bytes);

  /// The same for one watch event, without the four bytes of length in front of it. Errors and
  /// bookmarks are kept whole whatever the projection.
  std::optional<WatchEvent> decode_event(std::string_view bytes);

  const std::string& error() const LOOKOUT_LIFETIME_BOUND;

  /// The fields that the last object has lost, without those that the projection drops.
  const UnknownFields& unknown_fields() const LOOKOUT_LIFETIME_BOUND;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// List bodies in protobuf: an envelope around a list of a built-in kind, or around a
/// PartialObjectMetadataList.
class ProtobufListDecoder final : public ListDecoderOfEncoding {
 public:
  ProtobufListDecoder(const StreamOptions& options, OnItem on_item, OnMalformed on_malformed);
};

/// Watch bodies in protobuf: frames of four bytes of length, big-endian, and an event.
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

/// Encodes objects of the built-in kinds as Kubernetes' generated code does, byte for byte: fields
/// in the order of their numbers, names of maps sorted, zeroes written where Go has no pointer.
/// Reusable (the buffers stay between calls), not thread-safe.
///
/// A field without a number cannot be encoded. Fields that the schema does not know, and values of
/// another type than it says, are left out and counted. The object then gets a field of a number
/// that no schema has, so that a reader who may not lose anything (StreamOptions::lossless) asks
/// for it in JSON; others step over it.
class ProtobufEncoder {
 public:
  ProtobufEncoder();
  ~ProtobufEncoder();
  ProtobufEncoder(const ProtobufEncoder&) = delete;
  ProtobufEncoder& operator=(const ProtobufEncoder&) = delete;

  /// Appends the object in its envelope. False, and nothing appended, if !has_protobuf() of its
  /// type.
  bool encode(const Object& object, std::string& out);

  /// The same as one frame of a watch, its length in front.
  bool encode_event(EventType type, const Object& object, std::string& out);

  /// A list in three parts: the head, which has to know how many bytes encode_list_item() will
  /// append for all items together; the items, which are of the type that they are asked for as,
  /// whatever they say themselves; the tail.
  bool encode_list_head(std::string_view api_version, std::string_view list_kind,
                        const ProtobufListMeta& meta, std::size_t items_size, std::string& out);
  void encode_list_item(std::string_view api_version, std::string_view kind, const Object& object,
                        std::string& out);
  static void encode_list_tail(std::string& out);

  /// How many fields of all objects so far could not be encoded.
  std::size_t left_out() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::api
