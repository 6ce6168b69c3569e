#include "lookout/tools/cache/controller.h"

#include <chrono>
#include <utility>

#include "lookout/tools/cache/snapshot.h"

namespace lookout::cache {
namespace {

/// True if an update from `before` to `now` is not a change.
bool is_sync(DeltaType cause, const api::Object& before, const api::Object& now) {
  switch (cause) {
    case DeltaType::kSync:
      return true;
    case DeltaType::kReplaced:
      return before == now;
    default:
      // The server may send an object again. (If a transform has removed the resourceVersion, the
      // update counts as a change.)
      return !now.resource_version().empty() &&
             before.resource_version() == now.resource_version() && before == now;
  }
}

}  // namespace

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
void Controller::remove_missed(const api::Object& last) {
  queue_first_list();
  queue_.remove_missed(last);
  note_queued();
}
void Controller::replace(std::vector<api::Object> objects, const std::string&) {
  queue_first_list();
  // (Failed transforms return empty objects.)
  std::erase_if(objects, [](const api::Object& object) { return !object; });
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

std::vector<api::Object> Controller::objects() const {
  std::vector<api::Object> out;
  const Snapshot snapshot = store_.snapshot();
  for (const auto& object : snapshot.objects()) out.push_back(object);
  return out;
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
  Delta delta;
  bool initial = false;
  while (queue_.pop(delta, initial)) {
    const bool deleted = delta.type == DeltaType::kDeleted;
    Notification notification;
    notification.type = deleted ? Notification::Type::kDelete : Notification::Type::kAdd;
    notification.cause = delta.type;
    notification.object = delta.object;
    notification.initial = initial;
    notification.final_state_unknown = delta.final_state_unknown;
    notifications.push_back(std::move(notification));
    changes.push_back(
        {deleted ? StoreChange::Type::kRemove : StoreChange::Type::kPut, std::move(delta.object)});
  }
  std::vector<api::Object> met = store_.apply(changes, resource_version);
  std::size_t told = 0;
  for (std::size_t i = 0; i < notifications.size(); ++i) {
    Notification& notification = notifications[i];
    if (met[i]) {
      notification.initial = false;
      if (notification.type == Notification::Type::kAdd) {
        notification.type = Notification::Type::kUpdate;
        notification.sync = is_sync(notification.cause, met[i], notification.object);
      } else if (notification.final_state_unknown) {
        notification.object = met[i];  // the last known state
      }
      notification.before = std::move(met[i]);
    } else if (notification.type == Notification::Type::kDelete) {
      continue;  // it was never delivered
    }
    if (told != i) notifications[told] = std::move(notification);
    ++told;
  }
  notifications.resize(told);
  on_changes_(std::move(notifications));
}

}  // namespace lookout::cache
