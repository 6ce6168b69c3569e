#include "lookout/tools/cache/controller.h"

#include <chrono>
#include <utility>

namespace lookout::cache {

Controller::Controller(Indexer& store, TransformFunc transform, OnChanges on_changes)
    : store_(store), queue_(store, std::move(transform)), on_changes_(std::move(on_changes)) {}

void Controller::add(const api::Object& object) {
  queue_first_list();
  queue_.add(object);
  note_queued();
}
void Controller::update(const api::Object& object) {
  queue_first_list();
  queue_.update(object);
  note_queued();
}
void Controller::remove(const api::Object& object) {
  queue_first_list();
  queue_.remove(object);
  note_queued();
}
void Controller::replace(std::vector<api::Object> objects, const std::string&) {
  queue_first_list();
  if (!queue_.populated() && store_.size() == 0 && !objects.empty()) {
    first_list_ = std::move(objects);
  } else {
    queue_.replace_prepared(objects);
  }
  note_queued();
}
void Controller::resync() {
  queue_first_list();
  queue_.resync();
  note_queued();
}

void Controller::queue_first_list() {
  if (!first_list_.empty()) queue_.replace_prepared(std::exchange(first_list_, {}));
}

void Controller::flush(const std::string& resource_version) {
  if (waiting() == 0) return apply_queued(resource_version);
  const auto begin = std::chrono::steady_clock::now();
  apply_queued(resource_version);
  note_queued();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  processing_.observe(took.count());
}

void Controller::apply_queued(const std::string& resource_version) {
  std::vector<StoreChange> changes;
  std::vector<Notification> notifications;
  changes.reserve(waiting());
  notifications.reserve(waiting());
  if (!first_list_.empty()) {
    for (api::Object& object : std::exchange(first_list_, {})) {
      Notification notification;
      notification.object = object;
      notification.initial = true;
      notifications.push_back(std::move(notification));
      changes.push_back({StoreChange::Type::kPut, std::move(object)});
    }
    queue_.skip_first_list();
  }
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
