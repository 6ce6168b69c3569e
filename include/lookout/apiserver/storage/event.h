// Storage changes, and the watch events made from them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/watch.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage {

/// One change of one object in the history. Immutable except for caches of computed results; shared
/// by all watchers; safe to use from any thread.
class Change {
 public:
  /// `object` is the object after the change; for a deletion, the last state with the
  /// resourceVersion of the deletion; for kError, the Status that ends watches of the key because
  /// its state cannot be read. `previous` is the object before; empty for a creation.
  Change(Revision revision, api::EventType type, std::string key, api::Object object,
         api::Object previous);

  Revision revision() const { return revision_; }
  /// kAdded, kModified, kDeleted or kError.
  api::EventType type() const { return type_; }
  /// The key below the prefix of the resource: "shop/web-1".
  const std::string& key() const { return key_; }
  const api::Object& object() const { return object_; }
  const api::Object& previous() const { return previous_; }

  /// The object before the change, with the resourceVersion of the change. Watchers receive it when
  /// the object no longer matches their selector.
  api::Object previous_at_revision() const;

  using Encoding = std::shared_ptr<const std::string>;
  /// The bytes of an event of this type for this change. While the change is recent, they are
  /// encoded once for all watchers with the same `form`. `make` must return the same bytes for the
  /// same type and form.
  Encoding encoding(api::EventType type, std::string_view form,
                    const std::function<std::string()>& make) const;
  /// Called when the change is no longer recent.
  void forget_encodings() const;

 private:
  const Revision revision_;
  const api::EventType type_;
  const std::string key_;
  const api::Object object_;
  const api::Object previous_;

  mutable std::mutex mutex_;
  mutable api::Object previous_at_revision_;
  struct Encoded {
    api::EventType type;
    std::string form;
    Encoding bytes;
  };
  mutable std::vector<Encoded> encodings_;
  mutable bool young_ = true;
};

using ChangePtr = std::shared_ptr<const Change>;

/// One item of a watch: a change, an existing object, a bookmark or an error.
struct Event {
  api::EventType type = api::EventType::kError;
  /// The object; a Status for kError; empty for kBookmark.
  api::Object object = {};
  /// The revision of the change or the bookmark; for existing objects at the start, the object's.
  Revision revision = 0;
  /// A bookmark after the existing objects.
  bool initial_events_end = false;
  /// More changes of the same revision follow: objects that expire together, or a transaction of
  /// another etcd client.
  bool revision_continues = false;
  /// The change of the event; null for existing objects, bookmarks and errors.
  ChangePtr change = nullptr;
};

}  // namespace lookout::apiserver::storage
