#include "lookout/tools/cache/read_view.h"

#include "tools/cache/store_state.h"

namespace lookout::cache {

ReadView::ReadView(const detail::StoreCore& core) : core_(core), place_(core.reclaimer.enter()) {}
ReadView::~ReadView() { core_.reclaimer.leave(place_); }

const api::detail::ObjectHeader* ReadView::find(std::string_view ns, std::string_view name) const {
  return core_.find_newest(ns, name);
}

const api::detail::ObjectHeader* ReadView::find_key(std::string_view key) const {
  return core_.find_newest_key(key);
}

std::vector<const api::detail::ObjectHeader*> ReadView::find_many(
    std::span<const ObjectName> keys) const {
  std::vector<const api::detail::ObjectHeader*> out(keys.size());
  core_.find_newest(keys, out.data());
  return out;
}

}  // namespace lookout::cache
