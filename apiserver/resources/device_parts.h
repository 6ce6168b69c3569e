// Parts of device claims and resource slices that are validated in several places.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/field.h"

namespace lookout::apiserver::resources {

/// Limits of a device claim, which the result of an allocation shares.
inline constexpr std::size_t kMostDeviceRequests = 32;
inline constexpr std::size_t kMostDeviceConfigs = 32;

/// Calls `check(element)` for the elements of a list, or reports an error if it has more than `most`.
/// Returns whether the elements were checked.
template <class Check>
bool check_list(const Field& list, std::size_t most, Check check) {
  if ((*list).size() > most) {
    list.too_many(most);
    return false;
  }
  list.each(check);
  return true;
}

/// Checks a list whose elements must differ in the text of the field `key(element)`. Duplicates are
/// reported after the other errors.
template <class Check, class Key>
void check_set(const Field& list, std::size_t most, Check check, Key key) {
  if (!check_list(list, most, check)) return;
  std::set<std::string_view> seen;
  list.each([&](const Field& element) {
    const Field text = key(element);
    if (!seen.insert(text.text()).second) text.named(element.path()).duplicate();
  });
}
/// Keys for check_set().
inline Field name_of(const Field& element) { return element["name"]; }
inline Field text_of(const Field& element) { return element; }

// device_validation.cc
void check_length(const Field& text, int most);
/// The names of the requests of a resource.k8s.io DeviceClaim, and "request/alternative".
std::set<std::string> device_request_names(api::Value devices);
/// Checks a reference to one of these names.
void check_device_request_name(const Field& reference, const std::set<std::string>& names);
/// Checks a set of references to these names, which may be empty.
void check_device_request_names(const Field& references, const std::set<std::string>& names);
/// Checks the parameters for a driver. Stored parameters may be longer than new ones.
void check_device_config(const Field& config, bool stored);
/// Checks a runtime.RawExtension, which must be an object.
void check_raw_object(const Field& object, bool stored);
void check_device_toleration(const Field& toleration);
/// Checks the name of an attribute or a capacity: "model" or "vendor.example.com/model". Errors are
/// reported for `field`.
void check_attribute_name(const Field& field, std::string_view name);
/// The conditions that a device must have, and must not have, before a pod is bound.
void check_binding_conditions(const Field& device);

}  // namespace lookout::apiserver::resources
