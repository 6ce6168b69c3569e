#include "tools/cache/store_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "lookout/api/error.h"

namespace lookout::cache::detail {

std::size_t State::index_of(std::string_view name) const {
  for (std::size_t i = 0; i < definitions().size(); ++i) {
    if (definitions()[i].name == name) return i;
  }
  throw InvalidArgument(fmt::format("the store has no index \"{}\"", name));
}

const Bucket* State::bucket(std::size_t index, std::string_view value) const {
  return bucket(index, value, hash_text(value));
}

const Bucket* State::bucket(std::size_t index, std::string_view value, std::uint32_t hash) const {
  const auto* found = BucketTrie::find(indexes->roots[index], hash,
                                       [&](Bucket* bucket) { return bucket->value() == value; });
  return found == nullptr ? nullptr : *found;
}

std::uint32_t hash_text(std::string_view text) { return api::key_hash({}, text); }

StoreCore::StoreCore(KeyFunc function) : key_func(std::move(function)) {
  definitions.push_back(std::make_unique<const IndexDefinitions>());
  auto* state = new State;
  state->indexes = new Indexes{1, definitions.back().get(), {}};
  current.store(state);
}

StoreCore::~StoreCore() {
  const State* state = current.load();
  for (auto* index : state->indexes->roots) {
    BucketTrie::destroy(index, [](Bucket* bucket) {
      PlaceTrie::destroy(bucket->places, [](const Place&) {});
      std::free(bucket);
    });
  }
  PlaceTrie::destroy(state->places, [](const Place&) {});
  Slots slots = state->slots;
  slots.destroy([](const Slot& slot) { api::Object::adopt(slot.header); });
  delete state->indexes;
  delete state;
  delete newest.load();
}

namespace {

auto has_key(std::string_view ns, std::string_view name) {
  return
      [ns, name](const api::Object& object) { return object.name() == name && object.ns() == ns; };
}

/// Prefetches the part of an object that contains its key.
void prefetch(const api::detail::ObjectHeader* header) {
  if (header == nullptr) return;
  constexpr std::size_t kLine = 64;
  __builtin_prefetch(header);
  __builtin_prefetch(reinterpret_cast<const char*>(header) + kLine);
}

/// The matching object with this hash. (A slot keeps its key while the trie that leads to it is being
/// read, but its object may be replaced by other versions.)
template <class Match>
Found find_object(const State& state, std::uint32_t hash, Match match) {
  Found out;
  PlaceTrie::find(state.places, hash, [&](const Place& place) {
    if (place.hash != hash) return false;
    const auto* const header = state.slots[place.slot].load();
    if (!match(object_of(header))) return false;
    out = {header, place.slot};
    return true;
  });
  return out;
}

}  // namespace

const api::detail::ObjectHeader* StoreCore::find_newest(std::string_view ns, std::string_view name,
                                                        std::uint32_t hash) const {
  if (key_func) return nullptr;
  const std::uint64_t before = changes.load(std::memory_order_seq_cst);
  if (const NewestTable* table = newest.load(std::memory_order_acquire);
      table != nullptr && before % 2 == 0) {
    // (Other hashes may share the bits in the table. If another key has this hash, the trie decides.)
    const auto* found = table->find(
        hash, [hash](const NewestTable::Header* header) { return header->key_hash == hash; });
    if (changes.load(std::memory_order_relaxed) == before &&
        (found == nullptr || has_key(ns, name)(object_of(found))))
      return found;
  }
  return find(*current.load(std::memory_order_seq_cst), ns, name).header;
}

const api::detail::ObjectHeader* StoreCore::find_newest_key(std::string_view key) const {
  if (key_func) {
    const State& state = *current.load(std::memory_order_seq_cst);
    return find_key(state, key).header;
  }
  const auto parts = split_key(key);
  return parts ? find_newest(parts->ns, parts->name) : nullptr;
}

void StoreCore::find_newest(std::span<const ObjectName> keys,
                            const api::detail::ObjectHeader** found) const {
  constexpr std::size_t kTogether = 16;
  std::uint32_t hashes[kTogether];
  for (std::size_t at = 0; at < keys.size(); at += kTogether) {
    const auto some = keys.subspan(at, std::min(kTogether, keys.size() - at));
    const api::detail::ObjectHeader** const out = found + at;
    const std::uint64_t before = changes.load(std::memory_order_seq_cst);
    const NewestTable* const table = newest.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < some.size(); ++i) {
      hashes[i] = api::key_hash(some[i].ns, some[i].name);
      if (table != nullptr) table->prefetch(hashes[i]);
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      out[i] = table == nullptr ? nullptr : table->guess(hashes[i]);
      detail::prefetch(out[i]);
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto [ns, name] = some[i];
      const bool right = before % 2 == 0 && out[i] != nullptr && out[i]->key_hash == hashes[i] &&
                         has_key(ns, name)(object_of(out[i])) &&
                         changes.load(std::memory_order_relaxed) == before;
      if (!right) out[i] = find_newest(ns, name, hashes[i]);
    }
  }
}

void StoreCore::prefetch(std::uint32_t hash) const {
  if (const NewestTable* table = newest.load(std::memory_order_acquire))
    detail::prefetch(table->guess(hash));
}

Found StoreCore::find(const State& state, std::string_view ns, std::string_view name) const {
  return key_func ? Found{} : find_object(state, api::key_hash(ns, name), has_key(ns, name));
}

Found StoreCore::find_key(const State& state, std::string_view key) const {
  if (!key_func) {
    const auto parts = split_key(key);
    return parts ? find(state, parts->ns, parts->name) : Found{};
  }
  return find_object(state, hash_text(key),
                     [&](const api::Object& object) { return key_func(object) == key; });
}

Found StoreCore::find_like(const State& state, const api::Object& object, std::uint32_t hash,
                           std::string_view key) const {
  return key_func ? find_key(state, key)
                  : find_object(state, hash, has_key(object.ns(), object.name()));
}

std::optional<ObjectName> split_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return ObjectName{{}, key};
  if (slash == 0) return std::nullopt;  // keys of cluster-scoped objects have no slash
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
