#include "tools/cache/store_state.h"

#include <fmt/format.h>

#include "lookout/api/error.h"

namespace lookout::cache::detail {

std::size_t State::index_of(std::string_view name) const {
  for (std::size_t i = 0; i < definitions->size(); ++i) {
    if ((*definitions)[i].name == name) return i;
  }
  throw InvalidArgument(fmt::format("the store has no index \"{}\"", name));
}

const Bucket* State::bucket(std::size_t index, std::string_view value) const {
  return bucket(index, value, hash_text(value));
}

const Bucket* State::bucket(std::size_t index, std::string_view value, std::uint32_t hash) const {
  const auto* found = BucketTrie::find(indexes[index], hash,
                                       [&](Bucket* bucket) { return bucket->value() == value; });
  return found == nullptr ? nullptr : *found;
}

std::uint32_t hash_text(std::string_view text) { return api::key_hash({}, text); }

StoreCore::StoreCore(KeyFunc function) : key_func(std::move(function)) {
  auto* state = new State;
  state->definitions = std::make_shared<const IndexDefinitions>();
  current.store(state);
}

StoreCore::~StoreCore() {
  const State* state = current.load();
  for (auto* index : state->indexes) {
    BucketTrie::destroy(index, [](Bucket* bucket) {
      SetTrie::destroy(bucket->objects, [](const SetEntry&) {});
      std::free(bucket);
    });
  }
  ObjectTrie::destroy(state->objects,
                      [](const ObjectEntry& entry) { api::Object::adopt(entry.header); });
  delete state;
}

const ObjectEntry* StoreCore::find(const State& state, std::string_view ns,
                                   std::string_view name) const {
  if (key_func) return nullptr;
  return ObjectTrie::find(state.objects, api::key_hash(ns, name), [&](const ObjectEntry& entry) {
    const api::Object& object = object_of(entry);
    return object.name() == name && object.ns() == ns;
  });
}

const ObjectEntry* StoreCore::find_key(const State& state, std::string_view key) const {
  if (!key_func) {
    const std::size_t slash = key.find('/');
    if (slash == std::string_view::npos) return find(state, {}, key);
    if (slash == 0) return nullptr;  // what lives in no namespace has a key without a slash
    return find(state, key.substr(0, slash), key.substr(slash + 1));
  }
  return ObjectTrie::find(state.objects, hash_text(key), [&](const ObjectEntry& entry) {
    return key_func(object_of(entry)) == key;
  });
}

const ObjectEntry* StoreCore::find_like(const State& state, const api::Object& object,
                                        std::string_view key) const {
  return key_func ? find_key(state, key) : find(state, object.ns(), object.name());
}

Pin::Pin(std::shared_ptr<StoreCore> owner) : core(std::move(owner)) {
  core->reclaimer.pin([this] {
    state = core->current.load(std::memory_order_seq_cst);
    return state->version;
  });
}

Pin::~Pin() { core->reclaimer.unpin(state->version); }

}  // namespace lookout::cache::detail
