#include "lookout/apiserver/storage/event.h"

#include <algorithm>

#include "lookout/api/detail/object_editor.h"
#include "lookout/api/symbols.h"

namespace lookout::apiserver::storage {

Change::Change(Revision revision, api::EventType type, std::string key, api::Object object,
               api::Object previous)
    : revision_(revision),
      type_(type),
      key_(std::move(key)),
      object_(std::move(object)),
      previous_(std::move(previous)) {}

api::Object Change::previous_at_revision() const {
  // The object of a deletion already has the resourceVersion of the change.
  if (type_ == api::EventType::kDeleted || !previous_) return object_;
  const std::lock_guard lock(mutex_);
  if (!previous_at_revision_) {
    const std::string text = std::to_string(revision_);
    previous_at_revision_ =
        api::with_metadata(previous_, {{api::sym::kResourceVersion, std::string_view(text)}});
  }
  return previous_at_revision_;
}

Change::Encoding Change::encoding(api::EventType type, std::string_view form,
                                  const std::function<std::string()>& make) const {
  // Under the lock, so that only one of many concurrent watchers does the work.
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(encodings_, [&](const Encoded& encoded) {
    return encoded.type == type && encoded.form == form;
  });
  if (known != encodings_.end()) return known->bytes;
  auto made = std::make_shared<const std::string>(make());
  if (young_) encodings_.push_back({type, std::string(form), made});
  return made;
}

void Change::forget_encodings() const {
  const std::lock_guard lock(mutex_);
  encodings_.clear();
  young_ = false;
}

}  // namespace lookout::apiserver::storage
