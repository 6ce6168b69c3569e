// Iterates over the objects of a moment.
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
  /// The number of remaining objects.
  std::size_t remaining() const;
  Revision revision() const { return moment_.revision; }

 private:
  Moment moment_;
  std::string prefix_;
  std::string key_;
  OrderedItems::Snapshot::Position position_;
  Moment::Undone::const_iterator undone_;
};

/// The remaining objects of a cursor that a predicate accepts.
class MomentSource final : public ObjectSource {
 public:
  MomentSource(MomentCursor cursor, Predicate predicate)
      : cursor_(std::move(cursor)), predicate_(std::move(predicate)) {}
  Awaitable<bool> next(std::vector<api::Object>& objects, std::size_t max) override;

 private:
  MomentCursor cursor_;
  Predicate predicate_;
};

/// The list for the options, at a matching revision.
ListResult list_of(Moment moment, const std::string& key, bool recursive, ListOptions options);

}  // namespace lookout::apiserver::storage::memory
