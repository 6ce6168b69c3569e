// ReadView: many lookups by name in an informer's store.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "lookout/base/attributes.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/read_view.h"

namespace lookout::lister {

/// A typed cache::ReadView: finds objects without counting references, one or many at once. Keep it
/// only briefly; borrowed objects are valid as long as the view.
///
///     const auto view = pods.lister().read();
///     for (const Pod& pod : view.find_many(keys)) {
///       if (pod) use(pod);
///     }
template <class T>
class ReadView {
 public:
  explicit ReadView(std::shared_ptr<const cache::Indexer> store)
      : store_(std::move(store)), view_(store_->read()) {}

  /// Empty if there is no such object. find_many() returns an empty element for such an object.
  cache::Borrowed<T> find(std::string_view ns, std::string_view name) const LOOKOUT_LIFETIME_BOUND {
    return view_.get<T>(ns, name);
  }
  cache::BorrowedList<T> find_many(std::span<const cache::ObjectName> keys) const
      LOOKOUT_LIFETIME_BOUND {
    return view_.get_many<T>(keys);
  }

 private:
  const std::shared_ptr<const cache::Indexer> store_;
  const cache::ReadView view_;
};

}  // namespace lookout::lister
