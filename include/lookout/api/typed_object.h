// The base of generated object classes.
#pragma once

#include <concepts>
#include <utility>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/api/view.h"

namespace lookout::api {

/// The base of generated objects such as k8s::core::v1::Pod: an Object (the same handle, with the
/// same operations) plus typed accessors.
///
/// A custom resource type can be written by hand:
///
///     struct CronTab : api::TypedObject {
///       using TypedObject::TypedObject;
///       static constexpr api::ResourceType kResource{
///           "stable.example.com", "v1", "CronTab", "crontabs", true};
///       std::string_view cron_spec() const { return (*this)["spec"]["cronSpec"].as_string(); }
///     };
///
/// Construction from an Object does not check the kind: fields that do not fit read as absent.
class TypedObject : public Object {
 public:
  TypedObject() = default;
  explicit TypedObject(Object object) : Object(std::move(object)) {}

 protected:
  template <class T>
  T field_as(Symbol name) const {
    return from_value<T>((*this)[name]);
  }
  /// For spec and status, whose offset is in the header.
  template <class T>
  T field_as(Symbol name, std::uint16_t detail::ObjectHeader::*offset) const {
    const detail::ObjectHeader* const top = header();
    const bool near =
        top != nullptr && top->*offset != 0 && top->*offset != detail::ObjectHeader::kFar;
    const Value part = near ? Value(top->body() + top->*offset) : (*this)[name];
    if constexpr (std::derived_from<T, PartView>) {
      return T(part, top);
    } else {
      return T(part);
    }
  }
};

namespace detail {

template <class T>
concept HasResource = requires {
  { T::kResource } -> std::convertible_to<ResourceType>;
};

template <class T>
concept ObjectView = std::derived_from<T, Object> && std::constructible_from<T, Object>;

}  // namespace detail

/// A type that clients and informers accept.
// The size comes first: the other checks do not compile for an incomplete type.
template <class T>
concept ResourceObject = (sizeof(T) > 0) && detail::ObjectView<T> && detail::HasResource<T>;

}  // namespace lookout::api
