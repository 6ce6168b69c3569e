#include "lookout/tools/cache/reflector_store.h"

#include <utility>

namespace lookout::cache {
namespace {

std::vector<api::Object> objects_of(const Indexer& store) {
  std::vector<api::Object> out;
  const Snapshot snapshot = store.snapshot();
  for (const auto& object : snapshot.objects()) out.push_back(object);
  return out;
}

}  // namespace

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
std::vector<api::Object> IndexerStore::objects() const { return objects_of(store_); }
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
std::vector<api::Object> UndeltaStore::objects() const { return objects_of(store_); }

}  // namespace lookout::cache
