#include "lookout/tools/cache/indexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <mutex>
#include <new>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/base/detail/log.h"
#include "lookout/tools/cache/detail/precedence.h"
#include "tools/cache/prepared_change.h"
#include "tools/cache/store_state.h"
#include "tools/cache/table_writer.h"
#include "tools/cache/value_table.h"

namespace lookout::cache {

using namespace detail;

namespace {

void release_object(void* header) {
  api::Object::adopt(static_cast<const api::detail::ObjectHeader*>(header));
}
void delete_state(void* state) { delete static_cast<State*>(state); }
void delete_indexes(void* indexes) { delete static_cast<Indexes*>(indexes); }

auto is_slot(Slots::Number slot) {
  return [slot](const Place& place) { return place.slot == slot; };
}

}  // namespace

class Indexer::Impl {
 public:
  Impl(KeyFunc key_func, const Indexers& indexers)
      : core_(std::make_shared<StoreCore>(std::move(key_func))) {
    if (!indexers.empty()) add_indexers(indexers);
  }

  ~Impl() { delete spare_.load(); }

  /// Applies changes as one version; returns the previous object for each.
  std::vector<api::Object> apply(std::span<const StoreChange> changes,
                                 const std::optional<std::string>& resource_version) {
    const BatchUse batch(spare_);
    batch->changes.reserve(changes.size());
    for (const auto& change : changes) prepare(change, *batch);
    find_earlier_changes(*batch);
    apply(*batch, resource_version);
    std::vector<api::Object> met;
    met.reserve(changes.size());
    for (auto& change : batch->changes) met.push_back(std::move(change.before));
    return met;
  }
  api::Object apply(StoreChange change) {
    const BatchUse batch(spare_);
    prepare(std::move(change), *batch);
    apply(*batch, std::nullopt);
    return std::move(batch->changes.front().before);
  }

  void replace(const std::vector<api::Object>& objects, const std::string& resource_version) {
    std::unordered_set<std::string> keys;
    for (const auto& object : objects) keys.insert(key_of(object));
    const BatchUse batch(spare_);
    precedence_.repeat(kPatienceOfABatch, [&] {
      batch->clear();
      batch->changes.reserve(objects.size());
      const Snapshot now = snapshot();
      for (const auto& object : now) {
        if (!keys.contains(key_of(object))) prepare({StoreChange::Type::kRemove, object}, *batch);
      }
      for (const auto& object : objects) prepare({StoreChange::Type::kPut, object}, *batch);
      find_earlier_changes(*batch);
      return try_apply(*batch, resource_version, now.version());
    });
  }

  void add_indexers(const Indexers& indexers) {
    IndexDefinitions added;
    for (const auto& [name, function] : indexers) {
      if (!function)
        throw InvalidArgument(fmt::format("the function of the index \"{}\" is empty", name));
      added.push_back({name, function});
    }
    // Index functions run before the writer's turn, while the store keeps changing. Each round only
    // calls them for the changes since the previous round.
    ValuesByObject values;
    ValueTable table;
    precedence_.repeat(kPatienceOfABatch, [&] {
      for (const auto& object : snapshot()) {
        if (!values.contains(object.header()))
          values.try_emplace(object.header(), object, index_values(added, object.header(), table));
      }
      return try_add_indexers(added, values, table);
    });
  }

  Snapshot snapshot() const { return Snapshot(std::make_shared<const Pin>(core_)); }

  /// `find` returns an object's header, or null.
  template <class Find>
  api::Object look(Find find) const {
    const Reclaimer::Guard guard(core_->reclaimer);
    const api::detail::ObjectHeader* const found = find(*core_);
    return object_of(found);
  }

  template <class Read>
  auto read(Read what) const {
    const Reclaimer::Guard guard(core_->reclaimer);
    return what(*core_->current.load(std::memory_order_seq_cst));
  }

  std::string key_of(const api::Object& object) const {
    return core_->key_func ? core_->key_func(object) : meta_namespace_key(object);
  }

  const StoreCore& core() const { return *core_; }
  std::uint64_t index_failures() const { return index_failures_.load(std::memory_order_relaxed); }

 private:
  /// More than a change of one object retires.
  static constexpr std::size_t kUsuallyRetired = 32;
  /// How often a change may be overtaken before it takes precedence.
  static constexpr int kPatienceOfABatch = 1;
  static constexpr int kPatienceOfOneChange = 100;

  /// Borrows the reusable batch, or makes a new one.
  class BatchUse {
   public:
    explicit BatchUse(std::atomic<Batch*>& spare) : spare_(spare), batch_(spare.exchange(nullptr)) {
      if (batch_ == nullptr) batch_ = std::make_unique<Batch>();
    }
    ~BatchUse() {
      if (batch_->changes.size() > kMostKept) return;
      batch_->clear();
      batch_.reset(spare_.exchange(batch_.release()));
    }
    BatchUse(const BatchUse&) = delete;
    BatchUse& operator=(const BatchUse&) = delete;
    Batch& operator*() const { return *batch_; }
    Batch* operator->() const { return batch_.get(); }

   private:
    static constexpr std::size_t kMostKept = 16;

    std::atomic<Batch*>& spare_;
    std::unique_ptr<Batch> batch_;
  };

  void apply(Batch& batch, const std::optional<std::string>& resource_version) {
    // If another writer came first, the lookups may be outdated.
    precedence_.repeat(batch.changes.size() > 1 ? kPatienceOfABatch : kPatienceOfOneChange,
                       [&] { return try_apply(batch, resource_version); });
  }

  /// Returns false if another writer came first, or if the store is not at the expected version.
  bool try_apply(Batch& batch, const std::optional<std::string>& resource_version,
                 std::optional<std::uint64_t> expected = std::nullopt) {
    look_up(batch);
    if (expected && batch.version != *expected) return false;
    if (!batch.definitions->empty()) {
      batch.values.clear();
      for (auto& change : batch.changes) {
        if (change.changes_nothing()) continue;
        change.before_values =
            index_values(*batch.definitions, change.before.header(), batch.values);
        change.after_values = index_values(*batch.definitions, change.after(), batch.values);
      }
    }
    return commit(batch, resource_version);
  }

  using ValuesByObject = std::unordered_map<const void*, std::pair<api::Object, IndexedValues>>;

  /// Returns false if `values` lacks an object.
  bool try_add_indexers(const IndexDefinitions& added, const ValuesByObject& values,
                        const ValueTable& table) {
    precedence_.respect();
    const std::lock_guard turn(turn_);
    const State& current = *core_->current.load();
    for (const auto& [name, function] : added) {
      if (std::any_of(current.definitions().begin(), current.definitions().end(),
                      [&](const auto& definition) { return definition.name == name; })) {
        throw InvalidArgument(fmt::format("the store already has an index \"{}\"", name));
      }
    }
    for (Slots::Cursor cursor(current.slots); cursor.get(); cursor.next()) {
      if (!values.contains(cursor.get()->header)) return false;
    }

    Edit edit{current.version + 1, {}, &spare_nodes_};
    auto next = std::make_unique<State>(current);
    auto definitions = std::make_unique<IndexDefinitions>(current.definitions());
    definitions->insert(definitions->end(), added.begin(), added.end());
    auto& roots = indexes_to_change(*next, edit, definitions.get());
    core_->definitions.push_back(std::move(definitions));
    const std::size_t first = roots.size();
    roots.resize(first + added.size(), nullptr);
    for (PlaceTrie::Cursor cursor(current.places); cursor.get(); cursor.next()) {
      const Place place = *cursor.get();
      const IndexedValues indexed = values.at(current.slots[place.slot].header).second;
      for (const ValueTable::Id id : table.of(indexed))
        put_in_index(roots[first + table[id].index], table[id], place, edit);
      if (indexed.count == 0) continue;
      Slot& slot = next->slots.change(place.slot, edit);
      const auto sum = static_cast<std::uint16_t>(slot.filing() + table.filing(indexed, first));
      slot.set(slot.header, slot.birth(), sum);
    }
    publish(std::move(next), edit);
    return true;
  }

  /// Adds a change to a batch.
  void prepare(StoreChange change, Batch& batch) const {
    if (!change.object) throw InvalidArgument("a store takes objects, not empty handles");
    auto& prepared = batch.changes.emplace_back();
    prepared.earlier = static_cast<std::uint32_t>(batch.changes.size() - 1);
    prepared.object = std::move(change.object);
    prepared.removes = change.type == StoreChange::Type::kRemove;
    if (core_->key_func) {
      batch.keys.push_back(key_of(prepared.object));
      prepared.hash = hash_text(batch.keys.back());
    } else {
      if (prepared.object.name().empty()) meta_namespace_key(prepared.object);  // throws
      prepared.hash = prepared.object.key_hash();
    }
  }

  /// Looks up the current object for each change, as of one version.
  void look_up(Batch& batch) const {
    auto& changes = batch.changes;
    const Reclaimer::Guard guard(core_->reclaimer);
    // (In-place changes of slots happen before this counter changes.)
    static_cast<void>(core_->changes.load(std::memory_order_seq_cst));
    const State& state = *core_->current.load(std::memory_order_seq_cst);
    batch.version = state.load_version();
    batch.definitions = state.indexes->definitions;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      PreparedChange& change = changes[i];
      // A later change of the same key sees the result of the earlier one.
      if (change.earlier != i) {
        const PreparedChange& earlier = changes[change.earlier];
        change.before = earlier.removes ? api::Object{} : earlier.object;
        continue;
      }
      core_->prefetch(change.hash);
      const Found found = core_->find_like(state, change.object, change.hash,
                                           batch.keys.empty() ? std::string_view{} : batch.keys[i]);
      change.slot = found.header == nullptr ? kNoSlot : found.slot;
      change.before = object_of(found.header);
    }
  }

  /// Sets PreparedChange::earlier.
  static void find_earlier_changes(Batch& batch) {
    auto& changes = batch.changes;
    if (changes.size() < 2) return;
    const auto same_key = [&](std::size_t a, std::size_t b) {
      if (!batch.keys.empty()) return batch.keys[a] == batch.keys[b];
      return changes[a].object.name() == changes[b].object.name() &&
             changes[a].object.ns() == changes[b].object.ns();
    };
    // Sorting by hash takes far less memory than a map of all keys.
    std::vector<std::uint32_t> order(changes.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return changes[i].hash; });
    for (std::size_t at = 1; at < order.size(); ++at) {
      const auto hash = changes[order[at]].hash;
      for (std::size_t before = at; before-- > 0 && changes[order[before]].hash == hash;) {
        if (!same_key(order[at], order[before])) continue;
        changes[order[at]].earlier = order[before];
        break;
      }
    }
  }

  /// Logs the failures 1, 2, 4, 8 and so on: an index function may throw for every object.
  void note_failure(const std::string& index, const api::Object& object,
                    const std::string& thrown) const {
    const std::uint64_t count = index_failures_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (!std::has_single_bit(count)) return;
    log::error(
        "index {}: its function threw for {}, which is not found through it: {} (failures: {})",
        index, object.key(), thrown, count);
  }

  IndexedValues index_values(const IndexDefinitions& definitions,
                             const api::detail::ObjectHeader* header, ValueTable& table) const {
    IndexedValues out;
    if (header == nullptr) return out;
    const api::Object& object = object_of(header);
    IndexValues& values = table.said();
    for (std::size_t i = 0; i < definitions.size(); ++i) {
      values.clear();
      try {
        definitions[i].function(object, values);
      } catch (const std::exception& e) {
        note_failure(definitions[i].name, object, e.what());
        continue;
      } catch (...) {
        note_failure(definitions[i].name, object, "something that is not a std::exception");
        continue;
      }
      table.add(out, i, values.values());
    }
    return out;
  }

  /// The writer's turn. Returns false if the store is no longer at the batch's version.
  bool commit(Batch& batch, const std::optional<std::string>& resource_version) {
    precedence_.respect();
    const std::lock_guard turn(turn_);
    const State* current = core_->current.load(std::memory_order_relaxed);
    if (current->version != batch.version) return false;
    core_->reclaimer.begin_write();
    if (update_in_place(batch, resource_version, *current)) return true;
    Edit edit{batch.version + 1, std::move(retired_), &spare_nodes_};
    auto next = std::make_unique<State>(*current);
    if (resource_version) next->resource_version = *resource_version;
    for (auto& change : batch.changes) {
      change.slot = batch.changes[change.earlier].slot;
      if (change.changes_nothing()) continue;
      if (!change.removes) {
        put(*next, change, batch.values, edit);
      } else if (change.before) {
        erase(*next, change, batch.values, edit);
      }
    }
    publish(std::move(next), edit, batch.changes);
    for (auto& change : batch.changes) {
      // (The slot has the reference.)
      if (!change.removes && !change.changes_nothing()) change.object.detach();
    }
    if (edit.retired.capacity() <= kUsuallyRetired) retired_ = std::move(edit.retired);
    return true;
  }

  /// The most frequent change is a new version of one object with the same index values. It only
  /// replaces the pointer in a slot. If no snapshot sees that slot, it is changed in place; lookups
  /// see the old or the new object. Returns false if the change is of another kind, or if a snapshot
  /// sees the slot.
  bool update_in_place(Batch& batch, const std::optional<std::string>& resource_version,
                       const State& current) {
    if (batch.changes.size() != 1 || !batch.changes.front().updates()) return false;
    PreparedChange& change = batch.changes.front();
    NewestTable* const table = table_.ready(current.size, change.after());
    const auto [slot, birth] = current.slots.at(change.slot);
    if (table == nullptr || slot.filing() != batch.values.filing(change.before_values) ||
        !batch.values.same(change.before_values, change.after_values)) {
      return false;
    }
    const std::uint64_t version = batch.version + 1;
    Retired retired[2] = {retired_object(slot, version)};
    std::unique_ptr<State> next;
    if (resource_version) {
      next = std::make_unique<State>(current);
      next->version = version;
      next->resource_version = *resource_version;
      retired[1] = retired_state(current, version);
    }
    const bool done = core_->reclaimer.publish_in_place(
        birth, version, std::span(retired).first(next == nullptr ? 1 : 2), [&] {
          table_.in_one_step([&] {
            table->replace(change.before.header(), change.after());
            slot.replace(change.after(), version, slot.filing());
            if (next == nullptr) {
              current.store_version(version);
            } else {
              core_->current.store(next.release(), std::memory_order_seq_cst);
            }
          });
        });
    if (done) change.object.detach();  // the slot has the reference
    return done;
  }

  void put(State& state, PreparedChange& change, const ValueTable& values, Edit& edit) {
    const bool is_new = change.slot == kNoSlot;
    if (is_new) {
      change.slot = new_slot(state, edit);
      put_in_trie(state.places, {change.hash, change.slot}, edit);
      ++state.size;
    }
    Slot& slot = state.slots.change(change.slot, edit);
    if (!is_new) {
      check_filing(state, slot, change, values, edit);
      retire_object(slot, edit);
    }
    file(state, change, values, edit);
    slot.set(change.after(), edit.version, values.filing(change.after_values));
  }

  void erase(State& state, PreparedChange& change, const ValueTable& values, Edit& edit) {
    const Slot& slot = state.slots[change.slot];
    check_filing(state, slot, change, values, edit);
    file(state, change, values, edit);
    retire_object(slot, edit);
    state.slots.clear(change.slot, edit);
    erase_from_trie(state.places, {change.hash, change.slot}, edit);
    free_slots_.push_back(std::exchange(change.slot, kNoSlot));
    --state.size;
  }

  Slots::Number new_slot(State& state, Edit& edit) {
    if (free_slots_.empty()) return state.slots.append(edit);
    const Slots::Number out = free_slots_.back();
    free_slots_.pop_back();
    return out;
  }

  static Retired retired_object(const Slot& slot, std::uint64_t death) {
    return {const_cast<api::detail::ObjectHeader*>(slot.header), &release_object, slot.birth(),
            death};
  }
  static Retired retired_state(const State& state, std::uint64_t death) {
    return {const_cast<State*>(&state), &delete_state, state.version, death};
  }
  static void retire_object(const Slot& slot, Edit& edit) {
    edit.retired.push_back(retired_object(slot, edit.version));
  }

  static void put_in_trie(PlaceTrie::Node*& trie, const Place& place, Edit& edit) {
    std::optional<Place> replaced;
    trie = PlaceTrie::put(trie, place, place.hash, PlaceOps{}, is_slot(place.slot), edit, replaced);
  }
  /// Returns true if the place was in the trie.
  static bool erase_from_trie(PlaceTrie::Node*& trie, const Place& place, Edit& edit) {
    std::optional<Place> erased;
    trie = PlaceTrie::erase(trie, place.hash, is_slot(place.slot), edit, erased);
    return erased.has_value();
  }

  // -------------------------------------------------------------------------------------------
  // indexes

  /// The roots of all indexes, which the edit may change.
  static std::vector<BucketTrie::Node*>& indexes_to_change(
      State& state, Edit& edit, const IndexDefinitions* definitions = nullptr) {
    auto* indexes = const_cast<Indexes*>(state.indexes);
    if (indexes->birth != edit.version) {
      edit.retire(indexes, &delete_indexes, indexes->birth);
      state.indexes = indexes = new Indexes{edit.version, indexes->definitions, indexes->roots};
    }
    if (definitions != nullptr) indexes->definitions = definitions;
    return indexes->roots;
  }

  /// Updates the indexes for a change. Most changes of an object change no index value, and then no
  /// index.
  static void file(State& state, const PreparedChange& change, const ValueTable& values,
                   Edit& edit) {
    if (values.same(change.before_values, change.after_values)) return;
    const Place place{change.hash, change.slot};
    auto& roots = indexes_to_change(state, edit);
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const auto before = values.of(change.before_values, i);
      const auto after = values.of(change.after_values, i);
      for (const ValueTable::Id id : before) {
        if (!std::ranges::binary_search(after, id))
          erase_from_index(roots[i], values[id], place, edit);
      }
      for (const ValueTable::Id id : after) {
        if (!std::ranges::binary_search(before, id))
          put_in_index(roots[i], values[id], place, edit);
      }
    }
  }

  /// A removed object must be removed from all indexes. If an index function now returns different
  /// values for the old object (it is not a pure function), searches all buckets for it.
  static void check_filing(State& state, const Slot& slot, PreparedChange& change,
                           const ValueTable& values, Edit& edit) {
    if (slot.filing() == values.filing(change.before_values)) return;
    const Place place{change.hash, change.slot};
    for (auto& index : indexes_to_change(state, edit)) {
      std::vector<ValueTable::Value> filed;
      for (BucketTrie::Cursor cursor(index); cursor.get() != nullptr; cursor.next()) {
        const Bucket& bucket = **cursor.get();
        if (PlaceTrie::find(bucket.places, place.hash, is_slot(place.slot)) != nullptr)
          filed.push_back({0, bucket.hash, std::string(bucket.value())});
      }
      for (const auto& value : filed) erase_from_index(index, value, place, edit);
    }
    change.before_values = {};
  }

  static Bucket* new_bucket(std::string_view value, std::uint32_t hash, const Edit& edit) {
    void* memory = std::malloc(sizeof(Bucket) + value.size());
    if (memory == nullptr) throw std::bad_alloc();
    auto* bucket = new (memory)
        Bucket{edit.version, nullptr, 0, hash, static_cast<std::uint32_t>(value.size())};
    if (!value.empty()) std::memcpy(bucket + 1, value.data(), value.size());
    return bucket;
  }

  /// The bucket itself if the edit created it, otherwise a copy.
  static Bucket* editable(Bucket* bucket, Edit& edit) {
    if (bucket->birth == edit.version) return bucket;
    Bucket* copy = new_bucket(bucket->value(), bucket->hash, edit);
    copy->places = bucket->places;
    copy->count = bucket->count;
    edit.retire(bucket, &std::free, bucket->birth);
    return copy;
  }

  static auto is_bucket(std::string_view value) {
    return [value](Bucket* bucket) { return bucket->value() == value; };
  }

  static void put_in_index(BucketTrie::Node*& index, const ValueTable::Value& filed_under,
                           const Place& place, Edit& edit) {
    const std::string_view value = filed_under.text;
    const std::uint32_t hash = filed_under.hash;
    Bucket* const* found = BucketTrie::find(index, hash, is_bucket(value));
    Bucket* bucket = found == nullptr ? new_bucket(value, hash, edit) : editable(*found, edit);
    put_in_trie(bucket->places, place, edit);
    ++bucket->count;
    std::optional<Bucket*> old;
    index = BucketTrie::put(index, bucket, hash, BucketOps{}, is_bucket(value), edit, old);
  }
  static void erase_from_index(BucketTrie::Node*& index, const ValueTable::Value& filed_under,
                               const Place& place, Edit& edit) {
    const std::string_view value = filed_under.text;
    const std::uint32_t hash = filed_under.hash;
    Bucket* const* found = BucketTrie::find(index, hash, is_bucket(value));
    if (found == nullptr) return;
    Bucket* bucket = editable(*found, edit);
    if (erase_from_trie(bucket->places, place, edit)) --bucket->count;
    std::optional<Bucket*> old;
    if (bucket->count == 0) {
      index = BucketTrie::erase(index, hash, is_bucket(value), edit, old);
      std::free(bucket);  // created by this edit
    } else {
      index = BucketTrie::put(index, bucket, hash, BucketOps{}, is_bucket(value), edit, old);
    }
  }

  void publish(std::unique_ptr<State> next, Edit& edit,
               std::span<const PreparedChange> changes = {}) {
    const State* old = core_->current.load();
    next->version = edit.version;
    // (A small store should not take more memory than its objects.)
    constexpr std::size_t kObjectsEach = 8;
    spare_nodes_.keep(next->size / kObjectsEach);
    edit.retired.push_back(retired_state(*old, edit.version));
    if (changes.empty() || core_->key_func) {
      core_->current.store(next.release(), std::memory_order_seq_cst);
    } else {
      table_.publish(std::move(next), edit, changes);
    }
    core_->reclaimer.publish(edit.version, edit.retired, edit.spare);
  }

  const std::shared_ptr<StoreCore> core_;
  Precedence precedence_;
  std::mutex turn_;
  TableWriter table_{*core_};              // guarded by turn_
  std::vector<Slots::Number> free_slots_;  // guarded by turn_
  SpareNodes spare_nodes_;                 // guarded by turn_
  std::vector<Retired> retired_;           // guarded by turn_; empty, memory for the next change
  std::atomic<Batch*> spare_{nullptr};
  mutable std::atomic<std::uint64_t> index_failures_{0};
};

Indexer::Indexer(Indexers indexers) : impl_(std::make_unique<Impl>(KeyFunc{}, indexers)) {}
Indexer::Indexer(KeyFunc key_func, Indexers indexers)
    : impl_(std::make_unique<Impl>(std::move(key_func), indexers)) {}
Indexer::~Indexer() = default;

api::Object Indexer::put(api::Object object) {
  return impl_->apply({StoreChange::Type::kPut, std::move(object)});
}

api::Object Indexer::remove(const api::Object& object) {
  return impl_->apply({StoreChange::Type::kRemove, object});
}

api::Object Indexer::remove_key(std::string_view key) {
  const api::Object object = get_by_key(key);
  return object ? remove(object) : api::Object{};
}

std::vector<api::Object> Indexer::apply(std::span<const StoreChange> changes,
                                        std::optional<std::string> resource_version) {
  return impl_->apply(changes, resource_version);
}

void Indexer::replace(std::vector<api::Object> objects, std::string resource_version) {
  impl_->replace(objects, resource_version);
}

void Indexer::set_resource_version(std::string resource_version) {
  impl_->apply({}, resource_version);
}

Snapshot Indexer::snapshot() const { return impl_->snapshot(); }
ReadView Indexer::read() const { return ReadView(impl_->core()); }

api::Object Indexer::get(std::string_view ns, std::string_view name) const {
  return impl_->look([&](const StoreCore& core) { return core.find_newest(ns, name); });
}

api::Object Indexer::get_by_key(std::string_view key) const {
  return impl_->look([&](const StoreCore& core) { return core.find_newest_key(key); });
}

api::Object Indexer::get(const api::Object& object) const {
  if (impl_->core().key_func) return get_by_key(key_of(object));
  require_key(object);
  return get(object.ns(), object.name());
}

std::size_t Indexer::size() const {
  return impl_->read([](const State& state) { return state.size; });
}

std::vector<api::Object> Indexer::list() const {
  std::vector<api::Object> out;
  const Snapshot now = snapshot();
  out.reserve(now.size());
  for (const auto& object : now) out.push_back(object);
  return out;
}

std::vector<std::string> Indexer::list_keys() const {
  std::vector<std::string> out;
  for (const auto& object : snapshot().objects()) out.push_back(key_of(object));
  return out;
}

std::vector<api::Object> Indexer::index(std::string_view index, const api::Object& object) const {
  const Snapshot now = snapshot();
  const State& state = *now.pin()->state;
  IndexValues values;
  state.definitions()[state.index_of(index)].function(object, values);
  std::vector<api::Object> out;
  std::unordered_set<const void*> seen;
  for (const auto& value : values.values()) {
    for (const auto& found : now.by_index(index, value)) {
      if (seen.insert(found.header()).second) out.push_back(found);
    }
  }
  return out;
}

std::vector<api::Object> Indexer::by_index(std::string_view index, std::string_view value) const {
  std::vector<api::Object> out;
  for (const auto& object : snapshot().by_index(index, value)) out.push_back(object);
  return out;
}

std::vector<std::string> Indexer::index_keys(std::string_view index, std::string_view value) const {
  std::vector<std::string> out;
  for (const auto& object : snapshot().by_index(index, value)) out.push_back(key_of(object));
  return out;
}

std::vector<std::string> Indexer::values_of(std::string_view index,
                                            const api::Object& object) const {
  const IndexDefinitions* const definitions =
      impl_->read([](const State& state) { return state.indexes->definitions; });
  for (const auto& definition : *definitions) {
    if (definition.name != index) continue;
    IndexValues values;
    definition.function(object, values);
    return {values.values().begin(), values.values().end()};
  }
  throw InvalidArgument(fmt::format("the store has no index \"{}\"", index));
}

std::string Indexer::resource_version() const {
  return impl_->read([](const State& state) { return state.resource_version; });
}

std::string Indexer::key_of(const api::Object& object) const { return impl_->key_of(object); }
void Indexer::require_key(const api::Object& object) const {
  if (impl_->core().key_func || object.name().empty()) impl_->key_of(object);
}
void Indexer::add_indexers(Indexers indexers) { impl_->add_indexers(indexers); }

IndexHandle Indexer::add_index(std::string name, IndexFunc function) {
  Indexers one;
  one.emplace(name, std::move(function));
  add_indexers(std::move(one));
  return {*this, std::move(name)};
}
std::vector<std::string> Indexer::indexers() const {
  const IndexDefinitions* const definitions =
      impl_->read([](const State& state) { return state.indexes->definitions; });
  std::vector<std::string> out;
  for (const auto& definition : *definitions) out.push_back(definition.name);
  return out;
}

std::uint64_t Indexer::index_failures() const { return impl_->index_failures(); }

}  // namespace lookout::cache
