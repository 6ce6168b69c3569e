// Predicate: filters events before they lead to a reconcile.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "lookout/api/object.h"
#include "lookout/base/empty_function.h"
#include "lookout/base/error.h"

namespace lookout::controller {

/// A change of an object in a cache.
struct Event {
  enum class Type { kCreate, kUpdate, kDelete };
  Type type = Type::kCreate;
  /// The version before; updates only.
  api::Object before = {};
  /// The new version; for a deletion, the last known version.
  api::Object object = {};
  /// True for a creation in the first list: the object existed before.
  bool initial = false;
  /// True for a missed deletion; `object` may not be the final version.
  bool final_state_unknown = false;
};

/// Filters events; controller-runtime's predicates. Combine them with &&, || and !:
///
///     generation_changed() || labels_changed()
///
/// A predicate runs before the event is mapped to requests. It does not affect the caches. It runs
/// on a handler thread and must be safe to call from several threads. An exception counts as true,
/// because a faulty predicate must not lose events.
class Predicate {
 public:
  using Function = std::function<bool(const Event&)>;
  /// True for all events.
  Predicate() = default;
  /// An empty function is true for all events, too.
  explicit Predicate(Function function) : function_(std::move(function)) {}

  bool operator()(const Event& event) const { return !function_ || function_(event); }
  bool takes_all() const { return !function_; }

 private:
  Function function_;
};

Predicate operator&&(Predicate a, Predicate b);
Predicate operator||(Predicate a, Predicate b);
Predicate operator!(Predicate a);

/// The following predicates filter updates only; all other events pass. An update from a resync has
/// the same version before and after, so none of them lets it pass. An update from one uid to
/// another always passes: the object was deleted and recreated while the watch was interrupted.
/// (Unlike controller-runtime, which loses the new object if both have the same generation.)
Predicate resource_version_changed();
/// metadata.generation, which changes with the spec but not with the status or the metadata. Do not
/// use it for kinds without a generation (core/v1 ConfigMap, Secret, Pod ...): their updates never
/// pass.
Predicate generation_changed();
Predicate labels_changed();
Predicate annotations_changed();

/// Passes events whose new object matches: "app=web,tier!=db". Throws api::SelectorError.
Predicate label_selector(std::string_view selector);

/// Passes events whose new object the function accepts: predicate<k8s::core::v1::Pod>([](const
/// auto& pod) { return pod.spec().node_name() == here; }). Throws InvalidArgument if it is empty.
template <class T, class Function>
Predicate predicate(Function function) {
  if (base::is_empty_function(function))
    throw InvalidArgument("predicate(): the function is empty");
  return Predicate([function = std::move(function)](const Event& event) {
    return static_cast<bool>(function(T(event.object)));
  });
}
/// Passes updates that the function accepts, and all other events. Throws InvalidArgument if it is
/// empty.
template <class T, class Function>
Predicate updated(Function function) {
  if (base::is_empty_function(function)) throw InvalidArgument("updated(): the function is empty");
  return Predicate([function = std::move(function)](const Event& event) {
    return event.type != Event::Type::kUpdate ||
           static_cast<bool>(function(T(event.before), T(event.object)));
  });
}

}  // namespace lookout::controller
