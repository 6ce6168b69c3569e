// Which events lead to a reconcile.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "lookout/api/object.h"

namespace lookout::controller {

/// A change of an object in a cache.
struct Event {
  enum class Type { kCreate, kUpdate, kDelete };
  Type type = Type::kCreate;
  /// The version before; only of updates.
  api::Object before = {};
  /// The new version; of a deletion the last one that was known.
  api::Object object = {};
  /// A creation that is part of the first list: the object was there before.
  bool initial = false;
  /// A deletion that was missed; `object` may not be the last version.
  bool final_state_unknown = false;
};

/// Says whether an event counts; controller-runtime's predicates. Combine them with &&, || and !:
///
///     generation_changed() || labels_changed()
///
/// A predicate runs before the event is mapped to requests. It does not change what caches hold.
/// It runs on a handler thread, must be safe to call from several threads, and an exception counts
/// as true: a predicate with a fault must not lose events.
class Predicate {
 public:
  using Function = std::function<bool(const Event&)>;
  /// True for all events.
  Predicate() = default;
  explicit Predicate(Function function) : function_(std::move(function)) {}

  bool operator()(const Event& event) const { return !function_ || function_(event); }
  bool takes_all() const { return !function_; }

 private:
  Function function_;
};

Predicate operator&&(Predicate a, Predicate b);
Predicate operator||(Predicate a, Predicate b);
Predicate operator!(Predicate a);

/// The next ones judge updates only; all other events pass. An update that a resync brings has the
/// same version before and after, so none of them lets it pass. An update from one uid to another
/// always passes: the object was deleted and made again while the watch was away. (Not so in
/// controller-runtime, which loses the new object if its generation is that of the old one.)
Predicate resource_version_changed();
/// metadata.generation, which changes with the spec and not with the status or the metadata. Not
/// for kinds whose objects have no generation (core/v1 ConfigMap, Secret, Pod ...): their updates
/// never pass.
Predicate generation_changed();
Predicate labels_changed();
Predicate annotations_changed();

/// Passes events whose new object has such labels: "app=web,tier!=db". Throws api::SelectorError.
Predicate label_selector(std::string_view selector);

/// Passes events whose new object the function accepts: predicate<k8s::core::v1::Pod>([](const auto&
/// pod) { return pod.spec().node_name() == here; }).
template <class T, class Function>
Predicate predicate(Function function) {
  return Predicate([function = std::move(function)](const Event& event) {
    return static_cast<bool>(function(T(event.object)));
  });
}
/// Passes updates that the function accepts, and all other events.
template <class T, class Function>
Predicate updated(Function function) {
  return Predicate([function = std::move(function)](const Event& event) {
    return event.type != Event::Type::kUpdate ||
           static_cast<bool>(function(T(event.before), T(event.object)));
  });
}

}  // namespace lookout::controller
