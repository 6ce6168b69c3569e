#include "lookout/tools/cache/read_view.h"

#include "tools/cache/store_state.h"

namespace lookout::cache {

ReadView::ReadView(const detail::StoreCore& core) : core_(core), place_(core.reclaimer.enter()) {}
ReadView::~ReadView() { core_.reclaimer.leave(place_); }

BorrowedObject ReadView::get(std::string_view ns, std::string_view name) const {
  return BorrowedObject(core_.find_newest(ns, name));
}

BorrowedObject ReadView::get_by_key(std::string_view key) const {
  return BorrowedObject(core_.find_newest_key(key));
}

}  // namespace lookout::cache
