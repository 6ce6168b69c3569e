// Changes and the events that watchers make of them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/watch.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage {

/// One change of one object, as the history keeps it. Immutable but for what it remembers of work
/// already done; shared by everybody who watches; safe to use from any thread.
class Change {
 public:
  /// `object` is the object after the change, or, for a deletion, the last state with the
  /// resourceVersion of the deletion. `previous` is the object before; empty for a creation.
  /// For kError: the Status that ends watches of the key, because its state cannot be read.
  Change(Revision revision, api::EventType type, std::string key, api::Object object,
         api::Object previous);

  Revision revision() const { return revision_; }
  /// kAdded, kModified, kDeleted or kError.
  api::EventType type() const { return type_; }
  /// The key below the prefix of the resource: "shop/web-1".
  const std::string& key() const { return key_; }
  const api::Object& object() const { return object_; }
  const api::Object& previous() const { return previous_; }

  /// The object before the change, with the resourceVersion of the change. A watcher gets it when
  /// the object leaves its selection.
  api::Object previous_at_revision() const;

  using Encoding = std::shared_ptr<const std::string>;
  /// The bytes of an event about this change, made once for all watchers that ask for the same
  /// `form` while the change is young. `make` must give the same bytes for the same form.
  Encoding encoding(const std::string& form, const std::function<std::string()>& make) const;
  /// Called when the change is no longer young.
  void forget_encodings() const;

 private:
  const Revision revision_;
  const api::EventType type_;
  const std::string key_;
  const api::Object object_;
  const api::Object previous_;

  mutable std::mutex mutex_;
  mutable api::Object previous_at_revision_;
  mutable std::vector<std::pair<std::string, Encoding>> encodings_;
  mutable bool young_ = true;
};

using ChangePtr = std::shared_ptr<const Change>;

/// One item of a watch: a change, a present object, a bookmark or an error.
struct Event {
  api::EventType type = api::EventType::kError;
  /// The object; a Status for kError; empty for kBookmark.
  api::Object object = {};
  /// The revision of the change or the bookmark; for present objects at the start, the object's.
  Revision revision = 0;
  /// A bookmark that ends the present objects.
  bool initial_events_end = false;
  /// More changes of the same revision follow: objects that vanish together when their time is up,
  /// or what somebody else did to etcd in one transaction.
  bool revision_continues = false;
  /// The change behind the event; null for present objects, bookmarks and errors.
  ChangePtr change = nullptr;
};

}  // namespace lookout::apiserver::storage
