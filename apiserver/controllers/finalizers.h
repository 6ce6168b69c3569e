// Removes finalizers and other list elements.
#pragma once

#include <string_view>

#include "apiserver/json.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::controllers {

/// The object without the list elements that satisfy `goes`, and without the list if it becomes
/// empty. `part` is the member with the list: "metadata" or "spec".
template <class Goes>
api::Object without(const api::Object& object, std::string_view part, std::string_view list,
                    Goes goes) {
  json::Document document = object.to_document();
  json::Value* parent = json::find(document, part);
  json::Value* array = parent == nullptr ? nullptr : json::find(*parent, list);
  if (array == nullptr || !array->IsArray()) return object;
  for (auto element = array->Begin(); element != array->End();)
    element = goes(*element) ? array->Erase(element) : element + 1;
  if (array->Empty()) json::erase(*parent, list);
  return api::Object::from(document);
}

bool has_finalizer(const api::Object& object, std::string_view name);

/// `part` is "spec" for the finalizers that only namespaces have.
api::Object without_finalizer(const api::Object& object, std::string_view name,
                              std::string_view part = "metadata");

}  // namespace lookout::apiserver::controllers
