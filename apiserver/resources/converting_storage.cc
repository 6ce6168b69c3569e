#include "apiserver/resources/converting_storage.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "apiserver/storage/vector_source.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/status.h"
#include "lookout/api/symbols.h"

namespace lookout::apiserver::resources {
namespace {

using api::EventType;
using api::Object;
using storage::Event;
using storage::StorageError;

/// The number of objects that are read from a list at once.
constexpr std::size_t kObjectsAtOnce = 500;

bool has_object(const Event& event) {
  return event.type != EventType::kError && event.type != EventType::kBookmark;
}

Object at_revision(const Object& object, storage::Revision revision) {
  const std::string text = std::to_string(revision);
  return api::with_metadata(object, {{api::sym::kResourceVersion, std::string_view(text)}});
}

/// All objects of a list.
Awaitable<std::vector<Object>> taken(storage::ObjectSource& source) {
  std::vector<Object> all;
  std::vector<Object> some;
  for (;;) {
    const bool more = co_await source.next(some, kObjectsAtOnce);
    if (!more) break;
    all.insert(all.end(), some.begin(), some.end());
  }
  co_return all;
}

class ConvertingWatch final : public storage::Watch {
 public:
  ConvertingWatch(std::unique_ptr<storage::Watch> stored,
                  std::shared_ptr<const WebhookConverter> converter, std::string api_version,
                  storage::Predicate predicate)
      : stored_(std::move(stored)),
        converter_(std::move(converter)),
        api_version_(std::move(api_version)),
        predicate_(std::move(predicate)) {}

  Awaitable<bool> next(std::vector<Event>& events, TimePoint until) override {
    events.clear();
    if (ended_) co_return false;
    if (!std::exchange(begun_, true)) stored_->on_stuck = on_stuck;
    const bool more = co_await stored_->next(events, until);
    std::optional<api::Status> failure;
    try {
      co_await convert(events);
    } catch (const api::StatusError& e) {
      failure = e.status();
    }
    if (!failure) co_return more;
    ended_ = true;
    stored_->cancel();
    events.clear();
    // A cancelled watch has no error.
    if (!gone_.stop_requested()) {
      Event error;
      error.object = failure->to_object();
      events.push_back(std::move(error));
    }
    co_return false;
  }

  void request_bookmark() override { stored_->request_bookmark(); }

  void cancel() override {
    gone_.request_stop();
    stored_->cancel();
  }

 private:
  /// Converts all events in one review; if required, also the objects before their changes.
  Awaitable<void> convert(std::vector<Event>& events) {
    std::vector<Object> objects;
    objects.reserve(events.size());
    for (const Event& event : events) {
      if (!has_object(event)) continue;
      objects.push_back(event.object);
      if (has_previous(event)) objects.push_back(event.change->previous());
    }
    if (objects.empty()) co_return;
    const std::vector<Object> converted =
        co_await converter_->show(std::move(objects), api_version_, gone_.get_token());
    std::vector<Event> selected;
    selected.reserve(events.size());
    auto at = converted.begin();
    for (Event& event : events) {
      if (!has_object(event)) {
        selected.push_back(std::move(event));
        continue;
      }
      const bool with_previous = has_previous(event);
      // An object that needs no conversion is encoded once for all watches.
      if (!at->same(event.object)) event.change = nullptr;
      event.object = *at++;
      const Object previous = with_previous ? *at++ : Object();
      if (select(event, previous)) selected.push_back(std::move(event));
    }
    events = std::move(selected);
  }

  bool has_previous(const Event& event) const {
    return event.type == EventType::kModified && event.change != nullptr &&
           event.change->previous() && !predicate_.accepts_everything();
  }

  /// Whether the watch delivers the event, and with which type.
  bool select(Event& event, const Object& previous) const {
    if (predicate_.accepts_everything()) return true;
    const bool now = predicate_.matches(event.object);
    if (!previous) return now;
    const bool before = predicate_.matches(previous);
    if (now == before) return now;
    event.change = nullptr;
    event.type = now ? EventType::kAdded : EventType::kDeleted;
    if (before) event.object = at_revision(previous, event.revision);
    return true;
  }

  const std::unique_ptr<storage::Watch> stored_;
  const std::shared_ptr<const WebhookConverter> converter_;
  const std::string api_version_;
  const storage::Predicate predicate_;
  std::stop_source gone_;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace

Awaitable<Object> ConvertingStorage::create(std::string key, Object object) {
  Object wanted = co_await kept(std::move(object));
  Object created = co_await stored_.create(std::move(key), std::move(wanted));
  co_return co_await shown(std::move(created));
}

Awaitable<Object> ConvertingStorage::get(std::string key, storage::Revision not_older_than) {
  Object stored = co_await stored_.get(std::move(key), not_older_than);
  co_return co_await shown(std::move(stored));
}

Awaitable<storage::ListResult> ConvertingStorage::list(std::string key, bool recursive,
                                                       storage::ListOptions options) {
  if (!options.predicate.accepts_everything() && options.limit > 0)
    co_return co_await list_selected(std::move(key), recursive, std::move(options));
  const storage::Predicate predicate = std::exchange(options.predicate, {});
  const bool selects = !predicate.accepts_everything();
  storage::ListResult result = co_await stored_.list(std::move(key), recursive, std::move(options));
  std::vector<Object> all = co_await taken(*result.objects);
  all = co_await converter_->show(std::move(all), api_version_);
  if (selects) std::erase_if(all, [&](const Object& one) { return !predicate.matches(one); });
  result.objects = std::make_unique<storage::VectorSource>(std::move(all));
  co_return result;
}

/// The predicate applies to converted objects, so the storage cannot apply the limit: this reads until
/// enough objects are selected.
Awaitable<storage::ListResult> ConvertingStorage::list_selected(std::string key, bool recursive,
                                                                storage::ListOptions options) {
  const storage::Predicate predicate = std::exchange(options.predicate, {});
  const std::size_t limit = std::exchange(options.limit, std::max(options.limit, kObjectsAtOnce));
  std::vector<Object> selected;
  storage::ListResult result;
  for (;;) {
    storage::ListOptions page = options;
    result = co_await stored_.list(key, recursive, std::move(page));
    std::vector<Object> objects = co_await taken(*result.objects);
    objects = co_await converter_->show(std::move(objects), api_version_);
    for (std::size_t i = 0; i < objects.size() && selected.size() < limit; ++i) {
      if (!predicate.matches(objects[i])) continue;
      selected.push_back(objects[i]);
      // The remaining objects belong to the next page.
      if (selected.size() == limit && i + 1 < objects.size())
        result.continue_key = objects[i].key() + '\0';
    }
    if (selected.size() == limit || result.continue_key.empty()) break;
    // All pages have the same revision.
    options.match = storage::VersionMatch::kExact;
    options.revision = result.revision;
    options.start_key = result.continue_key;
  }
  result.remaining.reset();
  result.objects = std::make_unique<storage::VectorSource>(std::move(selected));
  co_return result;
}

/// The function of an update cannot wait for the converter. Therefore the object is converted first,
/// and the result is written if the object has not changed.
Awaitable<Object> ConvertingStorage::guaranteed_update(std::string key, bool create_if_absent,
                                                       storage::Preconditions preconditions,
                                                       Update update) {
  for (;;) {
    const Object stored = co_await stored_.get(key, 0);
    if (!stored && !create_if_absent)
      throw StorageError(StorageError::Code::kKeyNotFound, prefix() + "/" + key);
    const Object present = co_await shown(stored);
    if (stored) preconditions.check(prefix() + "/" + key, present);
    Object wanted = update(present);
    wanted = co_await kept(std::move(wanted));
    Object written;
    try {
      if (!stored) {
        written = co_await stored_.create(key, wanted);
      } else {
        storage::Preconditions same = preconditions;
        same.uid = std::string(stored.uid());
        same.resource_version = std::string(stored.resource_version());
        Update settled = [wanted](const Object& /*present*/) { return wanted; };
        written =
            co_await stored_.guaranteed_update(key, false, std::move(same), std::move(settled));
      }
    } catch (const StorageError& e) {
      const bool moved = e.code() == StorageError::Code::kInvalidObject ||
                         e.code() == StorageError::Code::kKeyNotFound ||
                         e.code() == StorageError::Code::kKeyExists;
      if (!moved) throw;
    }
    if (!written) continue;
    co_return co_await shown(std::move(written));
  }
}

/// An object that cannot be converted is not deleted, because the response must contain it.
Awaitable<Object> ConvertingStorage::remove(std::string key, storage::Preconditions preconditions,
                                            Validate validate) {
  for (;;) {
    const Object stored = co_await stored_.get(key, 0);
    if (!stored) throw StorageError(StorageError::Code::kKeyNotFound, prefix() + "/" + key);
    const Object present = co_await shown(stored);
    preconditions.check(prefix() + "/" + key, present);
    if (validate) validate(present);
    storage::Preconditions same = preconditions;
    same.uid = std::string(stored.uid());
    same.resource_version = std::string(stored.resource_version());
    Object last;
    try {
      Validate anything;
      last = co_await stored_.remove(key, std::move(same), std::move(anything));
    } catch (const StorageError& e) {
      if (e.code() != StorageError::Code::kInvalidObject) throw;
    }
    if (!last) continue;
    co_return api::with_metadata(present, {{api::sym::kResourceVersion, last.resource_version()}});
  }
}

Awaitable<std::unique_ptr<storage::Watch>> ConvertingStorage::watch(std::string key, bool recursive,
                                                                    storage::WatchOptions options) {
  storage::Predicate predicate = std::exchange(options.predicate, {});
  options.with_previous = !predicate.accepts_everything();
  auto stored = co_await stored_.watch(std::move(key), recursive, std::move(options));
  co_return std::make_unique<ConvertingWatch>(std::move(stored), converter_, api_version_,
                                              std::move(predicate));
}

}  // namespace lookout::apiserver::resources
