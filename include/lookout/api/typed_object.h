// The base of generated object classes.
#pragma once

#include <concepts>
#include <utility>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/api/view.h"

namespace lookout::api {

/// The base of generated objects such as k8s::core::v1::Pod: an Object (the same handle, with all it can
/// do) and typed accessors.
///
/// A custom resource gets the same by hand:
///
///     struct CronTab : api::TypedObject {
///       using TypedObject::TypedObject;
///       static constexpr api::ResourceType kResource{
///           "stable.example.com", "v1", "CronTab", "crontabs", true};
///       std::string_view cron_spec() const { return (*this)["spec"]["cronSpec"].as_string(); }
///     };
///
/// Constructing one from an Object does not check the kind: what does not fit reads as absent.
class TypedObject : public Object {
 public:
  TypedObject() = default;
  explicit TypedObject(Object object) : Object(std::move(object)) {}

 protected:
  template <class T>
  T field_as(Symbol name) const {
    return from_value<T>(body()[name]);
  }
};

/// A type that a client and an informer can be asked for.
template <class T>
concept ResourceObject =
    requires { sizeof(T); } &&  // (asked of a type that is only declared, the others are errors)
    std::derived_from<T, Object> && std::constructible_from<T, Object> && requires {
      { T::kResource } -> std::convertible_to<ResourceType>;
    };

}  // namespace lookout::api
