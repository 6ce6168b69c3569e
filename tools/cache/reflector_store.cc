#include "lookout/tools/cache/reflector_store.h"

#include <utility>

namespace lookout::cache {

void IndexerStore::add(const api::Object& object) {
  changes_.push_back({StoreChange::Type::kPut, object});
}
void IndexerStore::update(const api::Object& object) { add(object); }
void IndexerStore::remove(const api::Object& object) {
  changes_.push_back({StoreChange::Type::kRemove, object});
}
void IndexerStore::replace(std::vector<api::Object> objects, const std::string& resource_version) {
  changes_.clear();
  store_.replace(std::move(objects), resource_version);
}
void IndexerStore::flush(const std::string& resource_version) {
  const auto changes = std::exchange(changes_, {});
  store_.apply(changes, resource_version);
}
api::Object IndexerStore::prepare(api::Object object) const {
  api::Object known = store_.get(object);
  return known == object ? known : object;
}

void UndeltaStore::add(const api::Object& object) {
  store_.put(object);
  push_(store_.snapshot());
}
void UndeltaStore::remove(const api::Object& object) {
  store_.remove(object);
  push_(store_.snapshot());
}
void UndeltaStore::replace(std::vector<api::Object> objects, const std::string& resource_version) {
  store_.replace(std::move(objects), resource_version);
  push_(store_.snapshot());
}
void UndeltaStore::flush(const std::string& resource_version) {
  store_.set_resource_version(resource_version);
}

}  // namespace lookout::cache
