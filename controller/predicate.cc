#include "lookout/controller/predicate.h"

#include <utility>

#include "lookout/api/labels.h"
#include "lookout/api/value.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::controller {
namespace {

template <class Changed>
Predicate changed(Changed function) {
  return Predicate([function](const Event& event) {
    if (event.type != Event::Type::kUpdate) return true;
    if (!event.before || !event.object) return false;
    // The watch missed that the object was deleted and recreated.
    if (event.before.uid() != event.object.uid()) return true;
    return function(event.before, event.object);
  });
}

/// An empty map equals an absent one.
bool differ(const api::Value& before, const api::Value& after) {
  return (!before.empty() || !after.empty()) && before != after;
}

}  // namespace

Predicate operator&&(Predicate a, Predicate b) {
  if (a.takes_all()) return b;
  if (b.takes_all()) return a;
  return Predicate(
      [a = std::move(a), b = std::move(b)](const Event& event) { return a(event) && b(event); });
}

Predicate operator||(Predicate a, Predicate b) {
  if (a.takes_all() || b.takes_all()) return Predicate();
  return Predicate(
      [a = std::move(a), b = std::move(b)](const Event& event) { return a(event) || b(event); });
}

Predicate operator!(Predicate a) {
  return Predicate([a = std::move(a)](const Event& event) { return !a(event); });
}

Predicate resource_version_changed() {
  return changed([](const api::Object& before, const api::Object& after) {
    return before.resource_version() != after.resource_version();
  });
}

Predicate generation_changed() {
  return changed([](const api::Object& before, const api::Object& after) {
    return before.metadata().generation() != after.metadata().generation();
  });
}

Predicate labels_changed() {
  return changed([](const api::Object& before, const api::Object& after) {
    return differ(before.labels(), after.labels());
  });
}

Predicate annotations_changed() {
  return changed([](const api::Object& before, const api::Object& after) {
    return differ(before.annotations(), after.annotations());
  });
}

Predicate label_selector(std::string_view selector) {
  return Predicate([parsed = api::labels::parse(selector)](const Event& event) {
    return parsed.matches(event.object);
  });
}

}  // namespace lookout::controller
