// Conversion of custom resources between their versions.
#pragma once

#include <functional>
#include <utility>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/api/typed_object.h"
#include "lookout/base/empty_function.h"
#include "lookout/controller/webhook_admission.h"

namespace lookout::controller::detail {

/// `base` has the apiVersion, the kind and the metadata of the result. Returns the converted
/// object.
using ConvertFunction =
    std::function<api::Object(const api::Object& from, const api::Object& base)>;

/// One version of a kind, with its conversions to and from the hub.
struct Spoke {
  api::Resource hub;
  api::Resource spoke;
  ConvertFunction to_hub;
  ConvertFunction from_hub;
};

/// Empty if `function` is.
template <class From, class To, class Function>
ConvertFunction convert_function(Function function) {
  if (base::is_empty_function(function)) return {};
  return [function = std::move(function)](const api::Object& from,
                                          const api::Object& base) -> api::Object {
    const From source(from);
    const To target(base);
    DraftOf<To> draft = draft_of(target);
    function(source, draft);
    return draft.build();
  };
}

}  // namespace lookout::controller::detail
