// The fields that a request cannot own, because the server ignores their values.
#pragma once

#include <string_view>
#include <vector>

#include "apiserver/fields/field_set.h"
#include "apiserver/fields/typed_value.h"

namespace lookout::apiserver::fields {

/// The fields that a request to a resource or to a subresource can own (kube-apiserver's
/// ResetFieldsStrategy).
class OwnableFields {
 public:
  /// `subresource` is empty for the object itself.
  static OwnableFields of(std::string_view group, std::string_view plural,
                          std::string_view subresource, bool custom, bool has_status);

  FieldSet filtered(const FieldSet& set) const;
  Comparison filtered(Comparison comparison) const;

 private:
  using Path = std::vector<std::string_view>;

  FieldSet reset_;          // and everything below
  std::vector<Path> only_;  // if not empty, nothing else; "*" stands for any element
};

/// Metadata without an owner: the identity of the object, and fields that the server sets.
const FieldSet& unowned_metadata();

}  // namespace lookout::apiserver::fields
