// Predicate: the selection of a list or a watch.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/labels.h"
#include "lookout/api/object.h"
#include "lookout/base/attributes.h"

namespace lookout::apiserver::storage {

/// Reads a field of an object as Kubernetes does for field selectors: an absent field may have a
/// default ("false", "0"). The result may refer to the object or to `scratch`.
using FieldReader =
    std::function<std::string_view(const api::Object& object, std::string& scratch)>;

/// A field must, or must not, have this value.
struct FieldRequirement {
  FieldReader read;
  std::string value;
  bool equal = true;
};

/// Label selector and field selector (k8s.io/apiserver/pkg/storage.SelectionPredicate). The default
/// accepts everything. Safe to read from many threads.
struct Predicate {
  LOOKOUT_OPTION api::labels::Selector labels = {};
  LOOKOUT_OPTION std::vector<FieldRequirement> fields = {};

  bool accepts_everything() const { return labels.empty() && fields.empty(); }
  bool matches(const api::Object& object) const;
};

}  // namespace lookout::apiserver::storage
