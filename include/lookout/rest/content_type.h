// ContentType: the encoding in which a client requests objects.
#pragma once

#include <optional>
#include <string_view>

namespace lookout::rest {

/// The encoding of lists, watches and gets. Resources without a protobuf encoding (custom
/// resources, unless only metadata is requested) always arrive as JSON, and so do the answers of a
/// server without protobuf. Request bodies are JSON.
///
/// Protobuf is smaller and cheaper on both sides, but it does not carry the names of fields: fields
/// of a newer server that this library's schema (api::schema_version()) does not know cannot be
/// kept.
enum class ContentType {
  /// Protobuf until it would lose data, then JSON: when an object of a resource has a field that
  /// the schema does not know, or cannot be decoded, the client requests this resource in JSON from
  /// then on. A watch that meets such an object ends normally; a list that has delivered items
  /// fails with an api::DecodeError. (A Reflector recovers from both by itself.)
  kAuto,
  kJson,
  /// Always protobuf: unknown fields are dropped, counted (ListMeta::unknown_fields) and logged
  /// once for each resource. (client-go's fixed types drop them, too.) Only get() retries in JSON,
  /// because its result may be used for an update.
  kProtobuf
};

/// "auto", "json" or "protobuf"; empty for any other text.
std::optional<ContentType> parse_content_type(std::string_view text);

}  // namespace lookout::rest
