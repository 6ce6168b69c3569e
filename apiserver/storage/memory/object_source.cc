#include "apiserver/storage/memory/object_source.h"

#include <algorithm>

#include "apiserver/storage/vector_source.h"

namespace lookout::apiserver::storage::memory {
namespace {

/// The first key after all keys with this prefix. Empty: there is none.
std::string behind(std::string prefix) {
  if (!prefix.empty()) ++prefix.back();  // a prefix ends with '/'
  return prefix;
}

}  // namespace

MomentCursor::MomentCursor(Moment moment, std::string prefix, const std::string& start)
    : moment_(std::move(moment)), prefix_(std::move(prefix)) {
  if (moment_.undone == nullptr) moment_.undone = std::make_shared<const Moment::Undone>();
  const std::string& first = std::max(prefix_, start);
  position_ = moment_.items.lower_bound(first);
  undone_ = moment_.undone->lower_bound(first);
}

api::Object MomentCursor::next() {
  for (;;) {
    auto ahead = position_;
    const Item* item = moment_.items.next(ahead);
    if (item != nullptr && !item->key.starts_with(prefix_)) item = nullptr;
    const bool more_undone =
        undone_ != moment_.undone->end() && undone_->first.starts_with(prefix_);
    if (item == nullptr && !more_undone) return {};
    if (!more_undone || (item != nullptr && item->key < undone_->first)) {
      position_ = ahead;
      key_ = item->key;
      return item->object;
    }
    // The old state replaces the current one.
    if (item != nullptr && item->key == undone_->first) position_ = ahead;
    const auto& [key, object] = *undone_++;
    if (!object) continue;
    key_ = key;
    return object;
  }
}

std::size_t MomentCursor::remaining() const {
  const std::string end = behind(prefix_);
  const auto last = prefix_.empty() ? moment_.items.end() : moment_.items.lower_bound(end);
  auto count = static_cast<std::ptrdiff_t>(moment_.items.distance(position_, last));
  for (auto undone = undone_; undone != moment_.undone->end() && undone->first.starts_with(prefix_);
       ++undone) {
    auto position = moment_.items.lower_bound(undone->first);
    const Item* item = moment_.items.next(position);
    const bool is = item != nullptr && item->key == undone->first;
    const bool was = static_cast<bool>(undone->second);
    count += (was ? 1 : 0) - (is ? 1 : 0);
  }
  return static_cast<std::size_t>(count);
}

Awaitable<bool> MomentSource::next(std::vector<api::Object>& objects, std::size_t max) {
  objects.clear();
  while (objects.size() < max) {
    api::Object object = cursor_.next();
    if (!object) break;
    if (predicate_.matches(object)) objects.push_back(std::move(object));
  }
  co_return !objects.empty();
}

ListResult list_of(Moment moment, const std::string& key, bool recursive, ListOptions options) {
  ListResult result;
  result.revision = moment.revision;
  MomentCursor cursor(std::move(moment), recursive ? key : std::string(),
                      recursive ? options.start_key : key);
  if (recursive && options.limit == 0) {
    result.objects =
        std::make_unique<MomentSource>(std::move(cursor), std::move(options.predicate));
    return result;
  }
  std::vector<api::Object> page;
  if (!recursive) {
    api::Object object = cursor.next();
    if (object && cursor.key() == key && options.predicate.matches(object))
      page.push_back(std::move(object));
  } else {
    while (page.size() < options.limit) {
      api::Object object = cursor.next();
      if (!object) break;
      if (options.predicate.matches(object)) page.push_back(std::move(object));
    }
    if (const std::size_t remaining = cursor.remaining(); remaining > 0) {
      result.continue_key = cursor.key() + '\0';
      if (options.predicate.accepts_everything())
        result.remaining = static_cast<std::int64_t>(remaining);
    }
  }
  result.objects = std::make_unique<VectorSource>(std::move(page));
  return result;
}

}  // namespace lookout::apiserver::storage::memory
