// Walking through the objects of a moment.
#pragma once

#include <string>
#include <vector>

#include "apiserver/storage/memory/table.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage::memory {

/// The objects of a moment from some key on, in the order of their keys.
class MomentCursor {
 public:
  /// Objects whose key begins with `prefix` and is not before `start`.
  MomentCursor(Moment moment, std::string prefix, const std::string& start);

  /// The next object, or an empty handle at the end; key() is then its key.
  api::Object next();
  const std::string& key() const { return key_; }
  /// How many objects are still to come.
  std::size_t remaining() const;
  Revision revision() const { return moment_.revision; }

 private:
  Moment moment_;
  std::string prefix_;
  std::string key_;
  OrderedItems::Snapshot::Position position_;
  Moment::Undone::const_iterator undone_;
};

/// The objects that a cursor still has to give and a predicate accepts.
class MomentSource final : public ObjectSource {
 public:
  MomentSource(MomentCursor cursor, Predicate predicate)
      : cursor_(std::move(cursor)), predicate_(std::move(predicate)) {}
  Awaitable<bool> next(std::vector<api::Object>& objects, std::size_t max) override;

 private:
  MomentCursor cursor_;
  Predicate predicate_;
};

/// The list that the options ask for, of a moment that fits them.
ListResult list_of(Moment moment, const std::string& key, bool recursive, ListOptions options);

}  // namespace lookout::apiserver::storage::memory
