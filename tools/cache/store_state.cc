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
  delete newest.load();
}

namespace {

/// Whether an object, given as anything that has its header, has this key.
auto has_key(std::string_view ns, std::string_view name) {
  return [ns, name](const auto& entry) {
    const api::Object& object = object_of(entry);
    return object.name() == name && object.ns() == ns;
  };
}

const ObjectEntry* find_in_trie(const State& state, std::uint32_t hash, std::string_view ns,
                                std::string_view name) {
  return ObjectTrie::find(state.objects, hash, has_key(ns, name));
}

}  // namespace

const api::detail::ObjectHeader* StoreCore::find_newest(std::string_view ns,
                                                        std::string_view name) const {
  if (key_func) return nullptr;
  const std::uint32_t hash = api::key_hash(ns, name);
  const std::uint64_t before = changes.load(std::memory_order_seq_cst);
  if (const NewestTable* table = newest.load(std::memory_order_acquire);
      table != nullptr && before % 2 == 0) {
    const auto* found = table->find(hash, [&](const NewestTable::Header* header) {
      // (Other hashes share the bits that the table has.)
      return header->key_hash == hash && has_key(ns, name)(SetEntry{header});
    });
    if (changes.load(std::memory_order_relaxed) == before) return found;
  }
  const auto* entry = find_in_trie(*current.load(std::memory_order_seq_cst), hash, ns, name);
  return entry == nullptr ? nullptr : entry->header;
}

const api::detail::ObjectHeader* StoreCore::find_newest_key(std::string_view key) const {
  if (key_func) {
    const auto* entry = find_key(*current.load(std::memory_order_seq_cst), key);
    return entry == nullptr ? nullptr : entry->header;
  }
  const auto parts = split_key(key);
  return parts ? find_newest(parts->ns, parts->name) : nullptr;
}

const ObjectEntry* StoreCore::find(const State& state, std::string_view ns,
                                   std::string_view name) const {
  return key_func ? nullptr : find_in_trie(state, api::key_hash(ns, name), ns, name);
}

const ObjectEntry* StoreCore::find_key(const State& state, std::string_view key) const {
  if (!key_func) {
    const auto parts = split_key(key);
    return parts ? find(state, parts->ns, parts->name) : nullptr;
  }
  return ObjectTrie::find(state.objects, hash_text(key), [&](const ObjectEntry& entry) {
    return key_func(object_of(entry)) == key;
  });
}

const ObjectEntry* StoreCore::find_like(const State& state, const api::Object& object,
                                        std::string_view key) const {
  return key_func ? find_key(state, key) : find(state, object.ns(), object.name());
}

std::optional<ObjectName> split_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return ObjectName{{}, key};
  if (slash == 0) return std::nullopt;  // what lives in no namespace has a key without a slash
  return ObjectName{key.substr(0, slash), key.substr(slash + 1)};
}

Pin::Pin(std::shared_ptr<StoreCore> owner) : core(std::move(owner)) {
  core->reclaimer.pin([this] {
    state = core->current.load(std::memory_order_seq_cst);
    return state->version;
  });
}

Pin::~Pin() { core->reclaimer.unpin(state->version); }

}  // namespace lookout::cache::detail
