#include "apiserver/controllers/finalizers.h"

namespace lookout::apiserver::controllers {

bool has_finalizer(const api::Object& object, std::string_view name) {
  for (const api::Value finalizer : object["metadata"]["finalizers"].elements()) {
    if (finalizer.as_string() == name) return true;
  }
  return false;
}

api::Object without_finalizer(const api::Object& object, std::string_view name,
                              std::string_view part) {
  return without(object, part, "finalizers", [name](const json::Value& finalizer) {
    return finalizer.IsString() && json::text_of(finalizer) == name;
  });
}

}  // namespace lookout::apiserver::controllers
