#include "tools/cache/unreadable.h"

#include <utility>

namespace lookout::cache {

void Unreadable::add(std::string key) {
  ++count_;
  if (key.empty()) {
    nameless_ = true;
  } else {
    keys_.insert(std::move(key));
  }
}

void Unreadable::clear() {
  keys_.clear();
  count_ = 0;
  nameless_ = false;
}

std::unordered_set<std::string> Unreadable::keys() const {
  std::unordered_set<std::string> out = keys_;
  if (nameless_) out.emplace();
  return out;
}

void Unreadable::keep_known(std::vector<api::Object>& objects, const ReflectorStore& store) const {
  if (empty()) return;
  std::unordered_set<std::string> listed;
  for (const auto& object : objects) listed.insert(object.key());
  for (auto& known : store.objects()) {
    const std::string key = known.key();
    if (!listed.contains(key) && (nameless_ || keys_.contains(key)))
      objects.push_back(std::move(known));
  }
}

}  // namespace lookout::cache
