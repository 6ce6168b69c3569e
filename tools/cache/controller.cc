#include "lookout/tools/cache/controller.h"

#include <utility>

namespace lookout::cache {

Controller::Controller(Indexer& store, TransformFunc transform, OnChanges on_changes)
    : store_(store), queue_(store, std::move(transform)), on_changes_(std::move(on_changes)) {}

void Controller::replace(std::vector<api::Object> objects, const std::string&) {
  queue_.replace_prepared(objects);
}

void Controller::flush(const std::string& resource_version) {
  std::vector<StoreChange> changes;
  std::vector<Notification> notifications;
  changes.reserve(queue_.size());
  notifications.reserve(queue_.size());
  Deltas deltas;
  bool initial = false;
  while (queue_.pop(deltas, initial)) {
    for (Delta& delta : deltas) {
      const bool deleted = delta.type == DeltaType::kDeleted;
      Notification notification;
      notification.type = deleted ? Notification::Type::kDelete : Notification::Type::kAdd;
      notification.object = delta.object;
      notification.initial = initial;
      notification.final_state_unknown = delta.final_state_unknown;
      notifications.push_back(std::move(notification));
      changes.push_back({deleted ? StoreChange::Type::kRemove : StoreChange::Type::kPut,
                         std::move(delta.object)});
    }
  }
  std::vector<api::Object> met = store_.apply(changes, resource_version);
  for (std::size_t i = 0; i < notifications.size(); ++i) {
    Notification& notification = notifications[i];
    if (!met[i]) continue;
    notification.initial = false;
    if (notification.type == Notification::Type::kAdd) {
      notification.type = Notification::Type::kUpdate;
      notification.sync = met[i].resource_version() == notification.object.resource_version();
    }
    notification.before = std::move(met[i]);
  }
  on_changes_(std::move(notifications));
}

}  // namespace lookout::cache
