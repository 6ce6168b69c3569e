// In which encoding a client asks for objects.
#pragma once

#include <optional>
#include <string_view>

namespace lookout::rest {

/// The encoding of lists, watches and gets. Resources without a protobuf encoding
/// (custom resources, unless nothing but metadata is asked for) always come as JSON, and so do the
/// answers of a server that has no protobuf. Bodies of requests are JSON.
///
/// Protobuf is shorter and needs less work on both sides, but it has no names for its fields: those
/// that a newer server has, and this library's schema (api::schema_version()) does not know, cannot
/// be kept.
enum class ContentType {
  /// Protobuf as long as nothing is lost by it, then JSON: the first object of a resource with a
  /// field that the schema does not know, or one that cannot be decoded, makes the client ask for
  /// that resource in JSON from then on. A watch that meets such an object ends, as watches do; a
  /// list that has handed out items fails with an api::DecodeError. (A Reflector goes on after both
  /// by itself.)
  kAuto,
  kJson,
  /// Protobuf, whatever it loses: unknown fields are dropped, counted (ListMeta::unknown_fields)
  /// and
  /// logged once for each resource. As in client-go, whose types know no more than they are made
  /// for. Only a get() still asks again in JSON, since what it gives may become an update.
  kProtobuf
};

/// "auto", "json" or "protobuf"; nothing for any other text.
std::optional<ContentType> parse_content_type(std::string_view text);

}  // namespace lookout::rest
