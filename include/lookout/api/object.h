// Object: one flat, immutable document.
#pragma once

#include <rapidjson/fwd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/api/resource.h"
#include "lookout/api/value.h"
#include "lookout/base/attributes.h"

namespace lookout::k8s::meta::v1 {
class ObjectMeta;
}

namespace lookout::api {

namespace detail {
struct ObjectHeader;
}

/// A handle to one decoded Kubernetes object: a reference count, the identity, and the whole
/// content in a single allocation.
///
/// The content never changes, so handles may be copied to any thread and read there without locks;
/// a copy is a counter increment. The last handle frees the memory. Views into an object
/// (Value, std::string_view, typed views) are valid as long as a handle to it exists.
///
/// Views of a temporary handle do not compile, because they would dangle. Name the object first:
///
///     client.get("web").spec().replicas();                     // error: spec() is deleted
///     const auto web = client.get("web");                      // right
///     for (auto container : web.spec().pod_template().spec().containers()) ...
///
/// Text of a temporary handle is an owned std::string: `auto name = client.get("web").name();`.
///
/// An object keeps everything from the JSON, including fields that the schema does not know. It
/// does not keep the order of members or the spelling of numbers and strings; of duplicate members,
/// the last value counts. Decoding the output of to_json() gives equal bytes again.
///
/// An empty (default-constructed) handle stands for "no object"; all its accessors return empty
/// results.
class Object {
 public:
  Object() = default;
  Object(const Object& other) : header_(other.header_) { retain(); }
  Object(Object&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  Object& operator=(const Object& other) {
    Object(other).swap(*this);
    return *this;
  }
  Object& operator=(Object&& other) noexcept {
    Object(std::move(other)).swap(*this);
    return *this;
  }
  ~Object() { release(); }
  void swap(Object& other) noexcept { std::swap(header_, other.header_); }

  /// Decodes one JSON object. Throws DecodeError with the byte offset and the reason. (Streams use
  /// JsonDecoder, which does not throw.)
  static Object parse(std::string_view json);
  /// Converts from the mutable form. Throws DecodeError if `document` is not a JSON object or holds
  /// something that JSON cannot represent: text that is not UTF-8, infinity, nesting beyond 1000
  /// levels. Include <rapidjson/document.h> to call it.
  static Object from(const rapidjson::Value& document);
  /// Converts to the mutable form. Numbers that fit neither 64 bits nor a double become the nearest
  /// double. Include <rapidjson/document.h> to call it.
  rapidjson::Document to_document() const;
  /// Compact JSON, and indented JSON for people.
  std::string to_json() const;
  std::string to_pretty_json(unsigned indent = 2) const;

  explicit operator bool() const { return header_ != nullptr; }

  /// Identity, each O(1). Empty if the object has none.
  std::string_view ns() const& LOOKOUT_LIFETIME_BOUND;
  std::string ns() const&& { return std::string(ns()); }
  std::string_view name() const& LOOKOUT_LIFETIME_BOUND;
  std::string name() const&& { return std::string(name()); }
  std::string_view uid() const& LOOKOUT_LIFETIME_BOUND;
  std::string uid() const&& { return std::string(uid()); }
  std::string_view resource_version() const& LOOKOUT_LIFETIME_BOUND;
  std::string resource_version() const&& { return std::string(resource_version()); }
  /// "namespace/name", or "name" for cluster-scoped objects: client-go's MetaNamespaceKeyFunc.
  std::string key() const;

  /// "v1", "apps/v1" ... and "Pod", "Deployment" ...
  std::string_view api_version() const& LOOKOUT_LIFETIME_BOUND;
  std::string api_version() const&& { return std::string(api_version()); }
  std::string_view kind() const& LOOKOUT_LIFETIME_BOUND;
  std::string kind() const&& { return std::string(kind()); }
  GroupVersionKind gvk() const;

  /// metadata.labels and metadata.annotations, as maps. labels() is O(1).
  Value labels() const& LOOKOUT_LIFETIME_BOUND;
  Value labels() const&& = delete;  // name the object first
  Value annotations() const& LOOKOUT_LIFETIME_BOUND;
  Value annotations() const&& = delete;  // name the object first
  /// Typed metadata; include <lookout/k8s/meta/v1.h> to call it.
  k8s::meta::v1::ObjectMeta metadata() const& LOOKOUT_LIFETIME_BOUND;
  k8s::meta::v1::ObjectMeta metadata() const&& = delete;  // name the object first

  /// The whole content.
  Value body() const& LOOKOUT_LIFETIME_BOUND;
  Value body() const&& = delete;  // name the object first
  Value operator[](std::string_view key) const& LOOKOUT_LIFETIME_BOUND { return body()[key]; }
  Value operator[](std::string_view key) const&& = delete;  // name the object first
  Value operator[](const char* key) const& LOOKOUT_LIFETIME_BOUND { return body()[key]; }
  Value operator[](const char* key) const&& = delete;  // name the object first
  /// O(1) for spec and status.
  Value operator[](Symbol key) const& LOOKOUT_LIFETIME_BOUND;
  Value operator[](Symbol key) const&& = delete;  // name the object first
  Value at(std::string_view path) const& LOOKOUT_LIFETIME_BOUND { return body().at(path); }
  Value at(std::string_view path) const&& = delete;  // name the object first
  Value at(const FieldPath& path) const& LOOKOUT_LIFETIME_BOUND { return body().at(path); }
  Value at(const FieldPath& path) const&& = delete;  // name the object first

  /// Bytes of memory that the object occupies, without allocator overhead.
  std::size_t memory_size() const;
  /// A hash of namespace and name. It is the same for every version of an object and differs
  /// between processes.
  std::uint32_t key_hash() const;
  /// True if both handles refer to the same memory.
  bool same(const Object& other) const { return header_ == other.header_; }
  /// True if the contents are equal: compares length and bytes.
  friend bool operator==(const Object& a, const Object& b) { return equal(a, b); }

  /// For the library: releases the reference to the caller, and takes it back.
  const detail::ObjectHeader* detach() noexcept { return std::exchange(header_, nullptr); }
  static Object adopt(const detail::ObjectHeader* header) noexcept {
    Object object;
    object.header_ = header;
    return object;
  }
  const detail::ObjectHeader* header() const LOOKOUT_LIFETIME_BOUND { return header_; }

 private:
  static bool equal(const Object& a, const Object& b);
  void retain() const;
  void release() const;

  const detail::ObjectHeader* header_ = nullptr;
};

/// The value of Object::key_hash() for an object with this namespace and name.
std::uint32_t key_hash(std::string_view ns, std::string_view name);

}  // namespace lookout::api
