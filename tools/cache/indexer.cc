#include "lookout/tools/cache/indexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lookout/api/error.h"
#include "tools/cache/store_state.h"

namespace lookout::cache {

using namespace detail;

namespace {

/// Which values of a ValueTable an object has: so many, from there on.
struct IndexedValues {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// The values in all indexes of the objects of one change of the store, each kept once: of the
/// hundred thousand objects of a first list many have the same.
class ValueTable {
 public:
  using Id = std::uint32_t;
  struct Value {
    std::uint32_t index;  // the place of the index
    std::uint32_t hash;
    std::string text;
  };

  const Value& operator[](Id id) const { return values_[id]; }

  /// All values of an object, those of each index together, each once.
  std::span<const Id> of(IndexedValues values) const {
    return {ids_.data() + values.first, values.count};
  }
  /// Those in one index; ordered, as numbers.
  std::span<const Id> of(IndexedValues values, std::size_t index) const {
    const auto found = std::ranges::equal_range(of(values), index, {},
                                                [this](Id id) { return values_[id].index; });
    return {found.begin(), found.end()};
  }

  /// For index functions to write into.
  IndexValues& said() { return said_; }

  /// To be called with the values in one index after those in the one before.
  void add(IndexedValues& to, std::size_t index, std::span<const std::string> texts) {
    if (to.count == 0) to.first = static_cast<std::uint32_t>(ids_.size());
    const std::size_t begin = ids_.size();
    for (const auto& text : texts) ids_.push_back(id_of(index, text));
    const auto added = ids_.begin() + static_cast<std::ptrdiff_t>(begin);
    if (texts.size() > 1) {
      std::sort(added, ids_.end());
      ids_.erase(std::unique(added, ids_.end()), ids_.end());
    }
    to.count += static_cast<std::uint32_t>(ids_.size() - begin);
  }

 private:
  static constexpr std::size_t kFew = 8;  // so many are looked through
  static constexpr Id kNone = 0xFFFFFFFF;

  Id id_of(std::size_t index, const std::string& text) {
    const std::uint32_t hash = hash_text(text);
    const auto is_it = [&](const Value& value) {
      return value.hash == hash && value.index == index && value.text == text;
    };
    if (slots_.empty()) {
      for (std::size_t i = 0; i < values_.size(); ++i) {
        if (is_it(values_[i])) return static_cast<Id>(i);
      }
    } else {
      std::size_t at = slot_of(hash);
      for (; slots_[at] != kNone; at = slot_of(static_cast<std::uint32_t>(at + 1))) {
        if (is_it(values_[slots_[at]])) return slots_[at];
      }
    }
    const Id id = static_cast<Id>(values_.size());
    values_.push_back({static_cast<std::uint32_t>(index), hash, text});
    if (values_.size() > kFew) note(id);
    return id;
  }

  // (Their number is a power of two.)
  std::size_t slot_of(std::uint32_t hash) const { return hash & (slots_.size() - 1); }

  /// Makes a value known to the slots, of which at most half are in use.
  void note(Id added) {
    Id first = added;
    if (slots_.size() < 2 * values_.size()) {
      slots_.assign(std::bit_ceil(4 * values_.size()), kNone);
      first = 0;
    }
    for (Id id = first; id <= added; ++id) {
      std::size_t at = slot_of(values_[id].hash);
      while (slots_[at] != kNone) at = slot_of(static_cast<std::uint32_t>(at + 1));
      slots_[at] = id;
    }
  }

  IndexValues said_;
  std::vector<Value> values_;
  std::vector<Id> ids_;    // of all objects, one after the other
  std::vector<Id> slots_;  // a hash table of values_ once these are many
};

/// A change with all that user code has to say about it, ready for a writer's turn.
struct PreparedChange {
  api::Object before;
  api::Object after;  // empty for a removal
  std::uint32_t hash = 0;
  IndexedValues before_values;
  IndexedValues after_values;

  /// The very object that is there is put again.
  bool changes_nothing() const { return after && before.same(after); }
};

void release_object(void* header) {
  api::Object::adopt(static_cast<const api::detail::ObjectHeader*>(header));
}
void delete_state(void* state) { delete static_cast<State*>(state); }
void delete_table(void* table) { delete static_cast<NewestTable*>(table); }

template <class Entry>
auto is_object(const api::Object& object) {
  return [header = object.header()](const Entry& entry) {
    return header != nullptr && entry.header == header;
  };
}

}  // namespace

class Indexer::Impl {
 public:
  Impl(KeyFunc key_func, const Indexers& indexers)
      : core_(std::make_shared<StoreCore>(std::move(key_func))) {
    if (!indexers.empty()) add_indexers(indexers);
  }

  /// Applies changes as one version; returns what each of them met.
  std::vector<api::Object> apply(std::span<const StoreChange> changes,
                                 const std::optional<std::string>& resource_version) {
    for (;;) {
      if (auto met = try_apply(changes, resource_version)) return std::move(*met);
      // Another writer came first: what was looked up may no longer be so.
    }
  }

  void replace(const std::vector<api::Object>& objects, const std::string& resource_version) {
    std::unordered_set<std::string> keys;
    for (const auto& object : objects) keys.insert(key_of(object));
    for (;;) {
      const Snapshot now = snapshot();
      std::vector<StoreChange> changes;
      for (const auto& object : now) {
        if (!keys.contains(key_of(object))) changes.push_back({StoreChange::Type::kRemove, object});
      }
      for (const auto& object : objects) changes.push_back({StoreChange::Type::kPut, object});
      if (try_apply(changes, resource_version, now.version())) return;
    }
  }

  void add_indexers(const Indexers& indexers) {
    IndexDefinitions added;
    for (const auto& [name, function] : indexers) added.push_back({name, function});
    // Index functions run before the writer's turn, and the store goes on meanwhile. Each round has
    // only what the one before missed, so that a busy store does not keep us out for good.
    std::unordered_map<const void*, std::pair<api::Object, IndexedValues>> values;
    ValueTable table;
    for (;;) {
      const Snapshot now = snapshot();
      for (const auto& object : now) {
        if (!values.contains(object.header()))
          values.try_emplace(object.header(), object, index_values(added, object, table));
      }
      const std::lock_guard turn(turn_);
      const State& current = *core_->current.load();
      for (const auto& [name, function] : added) {
        if (std::any_of(current.definitions->begin(), current.definitions->end(),
                        [&](const auto& definition) { return definition.name == name; })) {
          throw InvalidArgument(fmt::format("the store already has an index \"{}\"", name));
        }
      }
      bool complete = true;
      for (ObjectTrie::Cursor cursor(current.objects); complete && cursor.get(); cursor.next())
        complete = values.contains(cursor.get()->header);
      if (!complete) continue;

      Edit edit{current.version + 1, {}};
      auto next = std::make_unique<State>(current);
      auto definitions = std::make_shared<IndexDefinitions>(*current.definitions);
      definitions->insert(definitions->end(), added.begin(), added.end());
      next->definitions = std::move(definitions);
      const std::size_t first = next->indexes.size();
      next->indexes.resize(next->definitions->size(), nullptr);
      for (ObjectTrie::Cursor cursor(current.objects); cursor.get(); cursor.next()) {
        const ObjectEntry entry = *cursor.get();
        const auto& [object, indexed] = values.at(entry.header);
        const std::uint32_t hash = ops().hash(entry);
        for (std::size_t i = 0; i < added.size(); ++i) {
          for (const ValueTable::Id id : table.of(indexed, i))
            put_in_index(next->indexes[first + i], table[id], {}, object, edit, hash);
        }
        if (indexed.count == 0) continue;
        std::optional<ObjectEntry> replaced;  // the new entry takes over its reference
        next->objects = ObjectTrie::put(
            next->objects, {entry.header, entry.birth(), entry.filed() + indexed.count}, hash,
            ops(), is_object<ObjectEntry>(object), edit, replaced);
      }
      publish(std::move(next), edit);
      return;
    }
  }

  Snapshot snapshot() const { return Snapshot(std::make_shared<const Pin>(core_)); }

  /// `find` returns an object's header, or null.
  template <class Find>
  api::Object look(Find find) const {
    const Reclaimer::Guard guard(core_->reclaimer);
    return object_of(SetEntry{find(*core_)});
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
  /// More than a change of one object leaves behind.
  static constexpr std::size_t kUsuallyRetired = 32;

  /// Nothing if another writer came between, or if the store is not at the expected version.
  std::optional<std::vector<api::Object>> try_apply(
      std::span<const StoreChange> changes, const std::optional<std::string>& resource_version,
      std::optional<std::uint64_t> expected = std::nullopt) {
    std::uint64_t version = 0;
    std::shared_ptr<const IndexDefinitions> definitions;
    std::vector<PreparedChange> prepared = look_up(changes, version, definitions);
    if (expected && version != *expected) return std::nullopt;
    ValueTable values;
    for (auto& change : prepared) {
      if (change.changes_nothing()) continue;
      change.before_values = index_values(*definitions, change.before, values);
      change.after_values = index_values(*definitions, change.after, values);
    }
    if (!commit(prepared, values, version, resource_version)) return std::nullopt;
    std::vector<api::Object> met;
    met.reserve(prepared.size());
    for (auto& change : prepared) met.push_back(std::move(change.before));
    return met;
  }

  /// Finds what each change meets, as of one version.
  std::vector<PreparedChange> look_up(std::span<const StoreChange> changes, std::uint64_t& version,
                                      std::shared_ptr<const IndexDefinitions>& definitions) const {
    std::vector<PreparedChange> out(changes.size());
    std::vector<std::string> keys(core_->key_func ? changes.size() : 0);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const api::Object& object = changes[i].object;
      if (!object) throw InvalidArgument("a store takes objects, not empty handles");
      if (core_->key_func) {
        keys[i] = key_of(object);
      } else if (object.name().empty()) {
        meta_namespace_key(object);  // throws
      }
      out[i].hash = core_->key_func ? hash_text(keys[i]) : object.key_hash();
      if (changes[i].type == StoreChange::Type::kPut) out[i].after = object;
    }
    const std::vector<std::size_t> earlier = earlier_changes(changes, keys, out);
    const Reclaimer::Guard guard(core_->reclaimer);
    const State& state = *core_->current.load(std::memory_order_seq_cst);
    version = state.version;
    definitions = state.definitions;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      // Later changes of one key meet what the earlier ones leave.
      if (earlier[i] != i) {
        out[i].before = out[earlier[i]].after;
        continue;
      }
      const auto* entry =
          core_->find_like(state, changes[i].object, keys.empty() ? std::string_view{} : keys[i]);
      if (entry != nullptr) out[i].before = object_of(*entry);
    }
    return out;
  }

  /// For each change the last one before it that has the same key, or itself.
  std::vector<std::size_t> earlier_changes(std::span<const StoreChange> changes,
                                           const std::vector<std::string>& keys,
                                           const std::vector<PreparedChange>& prepared) const {
    std::vector<std::size_t> out(changes.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    if (changes.size() < 2) return out;
    const auto same_key = [&](std::size_t a, std::size_t b) {
      if (!keys.empty()) return keys[a] == keys[b];
      return changes[a].object.name() == changes[b].object.name() &&
             changes[a].object.ns() == changes[b].object.ns();
    };
    // Sorted by hash: takes far less memory than a map of all keys.
    std::vector<std::size_t> order = out;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return prepared[i].hash; });
    for (std::size_t at = 1; at < order.size(); ++at) {
      const auto hash = prepared[order[at]].hash;
      for (std::size_t before = at; before-- > 0 && prepared[order[before]].hash == hash;) {
        if (!same_key(order[at], order[before])) continue;
        out[order[at]] = order[before];
        break;
      }
    }
    return out;
  }

  IndexedValues index_values(const IndexDefinitions& definitions, const api::Object& object,
                             ValueTable& table) const {
    IndexedValues out;
    if (!object) return out;
    IndexValues& values = table.said();
    for (std::size_t i = 0; i < definitions.size(); ++i) {
      values.clear();
      try {
        definitions[i].function(object, values);
      } catch (...) {
        index_failures_.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      table.add(out, i, values.values());
    }
    return out;
  }

  /// A writer's turn: false if the store is no longer at `version`.
  bool commit(std::vector<PreparedChange>& changes, const ValueTable& values, std::uint64_t version,
              const std::optional<std::string>& resource_version) {
    const std::lock_guard turn(turn_);
    const State* current = core_->current.load();
    if (current->version != version) return false;
    core_->reclaimer.begin_write();
    Edit edit{version + 1, {}};
    edit.retired.reserve(kUsuallyRetired);
    auto next = std::make_unique<State>(*current);
    if (resource_version) next->resource_version = *resource_version;
    for (auto& change : changes) {
      if (change.changes_nothing()) continue;
      if (change.after) {
        put(*next, change, values, edit);
      } else if (change.before) {
        erase(*next, change, values, edit);
      }
    }
    publish(std::move(next), edit, changes);
    return true;
  }

  void put(State& state, PreparedChange& change, const ValueTable& values, Edit& edit) {
    if (change.before) check_filing(state, change, values, edit);
    for (std::size_t i = 0; i < state.indexes.size(); ++i) {
      const auto before = values.of(change.before_values, i);
      const auto after = values.of(change.after_values, i);
      for (const ValueTable::Id id : before) {
        if (!std::ranges::binary_search(after, id))
          erase_from_index(state.indexes[i], values[id], change.before, edit, change.hash);
      }
      for (const ValueTable::Id id : after) {
        put_in_index(state.indexes[i], values[id],
                     std::ranges::binary_search(before, id) ? change.before : api::Object{},
                     change.after, edit, change.hash);
      }
    }
    if (core_->key_func) hashes_[change.after.header()] = change.hash;
    std::optional<ObjectEntry> replaced;
    const ObjectEntry entry(api::Object(change.after).detach(), edit.version,
                            change.after_values.count);
    state.objects = ObjectTrie::put(state.objects, entry, change.hash, ops(),
                                    is_object<ObjectEntry>(change.before), edit, replaced);
    if (replaced) {
      retire_object(*replaced, change.after, edit);
    } else {
      ++state.size;
    }
  }

  void erase(State& state, PreparedChange& change, const ValueTable& values, Edit& edit) {
    check_filing(state, change, values, edit);
    for (std::size_t i = 0; i < state.indexes.size(); ++i) {
      for (const ValueTable::Id id : values.of(change.before_values, i))
        erase_from_index(state.indexes[i], values[id], change.before, edit, change.hash);
    }
    std::optional<ObjectEntry> erased;
    state.objects = ObjectTrie::erase(state.objects, change.hash,
                                      is_object<ObjectEntry>(change.before), edit, erased);
    if (!erased) return;
    retire_object(*erased, {}, edit);
    --state.size;
  }

  void retire_object(const ObjectEntry& entry, const api::Object& successor, Edit& edit) {
    if (core_->key_func && entry.header != successor.header()) hashes_.erase(entry.header);
    edit.retire(const_cast<api::detail::ObjectHeader*>(entry.header), &release_object,
                entry.birth());
  }

  /// Indexes do not own their objects, so what leaves the store must leave all of them. Should the
  /// index functions say of the old object something else than when it was filed (they are no pure
  /// functions, then), it is looked for everywhere.
  void check_filing(State& state, PreparedChange& change, const ValueTable& values, Edit& edit) {
    const ObjectEntry* entry =
        ObjectTrie::find(state.objects, change.hash, is_object<ObjectEntry>(change.before));
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < state.indexes.size(); ++i) {
      for (const ValueTable::Id id : values.of(change.before_values, i)) {
        const Bucket* bucket = state.bucket(i, values[id].text, values[id].hash);
        if (bucket != nullptr && is_filed(*bucket, change.before, change.hash)) ++found;
      }
    }
    if (entry != nullptr && found == entry->filed() && found == change.before_values.count &&
        found < ObjectEntry::kMany) {
      return;
    }
    for (auto& index : state.indexes) {
      std::vector<ValueTable::Value> filed;
      for (BucketTrie::Cursor cursor(index); cursor.get() != nullptr; cursor.next()) {
        if (is_filed(**cursor.get(), change.before, change.hash))
          filed.push_back({0, (*cursor.get())->hash, std::string((*cursor.get())->value())});
      }
      for (const auto& value : filed)
        erase_from_index(index, value, change.before, edit, change.hash);
    }
    change.before_values = {};
  }

  static bool is_filed(const Bucket& bucket, const api::Object& object, std::uint32_t key_hash) {
    return SetTrie::find(bucket.objects, key_hash, is_object<SetEntry>(object)) != nullptr;
  }

  // -------------------------------------------------------------------------------------------
  // indexes

  static Bucket* new_bucket(std::string_view value, std::uint32_t hash, const Edit& edit) {
    void* memory = std::malloc(sizeof(Bucket) + value.size());
    if (memory == nullptr) throw std::bad_alloc();
    auto* bucket = new (memory)
        Bucket{edit.version, nullptr, 0, hash, static_cast<std::uint32_t>(value.size())};
    if (!value.empty()) std::memcpy(bucket + 1, value.data(), value.size());
    return bucket;
  }

  /// The bucket itself if the edit made it, else a copy.
  static Bucket* editable(Bucket* bucket, Edit& edit) {
    if (bucket->birth == edit.version) return bucket;
    Bucket* copy = new_bucket(bucket->value(), bucket->hash, edit);
    copy->objects = bucket->objects;
    copy->count = bucket->count;
    edit.retire(bucket, &std::free, bucket->birth);
    return copy;
  }

  static auto is_bucket(std::string_view value) {
    return [value](Bucket* bucket) { return bucket->value() == value; };
  }

  /// Files `after` under a value, in the place of `before` if that is set.
  void put_in_index(BucketTrie::Node*& index, const ValueTable::Value& filed_under,
                    const api::Object& before, const api::Object& after, Edit& edit,
                    std::uint32_t key_hash) {
    const std::string_view value = filed_under.text;
    const std::uint32_t hash = filed_under.hash;
    Bucket* const* found = BucketTrie::find(index, hash, is_bucket(value));
    Bucket* bucket = found == nullptr ? new_bucket(value, hash, edit) : editable(*found, edit);
    if (core_->key_func) hashes_[after.header()] = key_hash;
    std::optional<SetEntry> replaced;
    bucket->objects = SetTrie::put(bucket->objects, SetEntry{after.header()}, key_hash, ops(),
                                   is_object<SetEntry>(before), edit, replaced);
    if (!replaced) ++bucket->count;
    std::optional<Bucket*> old;
    index = BucketTrie::put(index, bucket, hash, BucketOps{}, is_bucket(value), edit, old);
  }
  void erase_from_index(BucketTrie::Node*& index, const ValueTable::Value& filed_under,
                        const api::Object& object, Edit& edit, std::uint32_t key_hash) {
    const std::string_view value = filed_under.text;
    const std::uint32_t hash = filed_under.hash;
    Bucket* const* found = BucketTrie::find(index, hash, is_bucket(value));
    if (found == nullptr) return;
    Bucket* bucket = editable(*found, edit);
    std::optional<SetEntry> erased;
    bucket->objects =
        SetTrie::erase(bucket->objects, key_hash, is_object<SetEntry>(object), edit, erased);
    if (erased) --bucket->count;
    std::optional<Bucket*> old;
    if (bucket->count == 0) {
      index = BucketTrie::erase(index, hash, is_bucket(value), edit, old);
      std::free(bucket);  // the edit's own: a copy, or made by it
    } else {
      index = BucketTrie::put(index, bucket, hash, BucketOps{}, is_bucket(value), edit, old);
    }
  }
  ObjectOps ops() const { return {core_->key_func ? &hashes_ : nullptr}; }

  void publish(std::unique_ptr<State> next, Edit& edit,
               std::span<const PreparedChange> changes = {}) {
    const State* old = core_->current.load();
    next->version = edit.version;
    edit.retire(const_cast<State*>(old), &delete_state, old->version);
    if (changes.empty() || core_->key_func) {
      core_->current.store(next.release(), std::memory_order_seq_cst);
    } else {
      publish_with_table(std::move(next), edit, changes);
    }
    core_->reclaimer.publish(edit.version, edit.retired);
  }

  /// Stores the new root and brings the table of the newest version up to date, in one step as far
  /// as readers can tell.
  void publish_with_table(std::unique_ptr<State> next, Edit& edit,
                          std::span<const PreparedChange> changes) {
    table_holds_all_ &= std::ranges::all_of(changes, [](const PreparedChange& change) {
      return NewestTable::can_hold(change.after.header());
    });
    NewestTable* const table = core_->newest.load(std::memory_order_relaxed);
    const bool keep = table != nullptr && table_holds_all_ && table->suits(next->size);
    auto other = keep || !table_holds_all_ ? nullptr : table_of(*next);
    const std::uint64_t before = core_->changes.load(std::memory_order_relaxed);
    core_->changes.store(before + 1, std::memory_order_relaxed);
    if (keep) {
      for (const auto& change : changes) update(*table, change);
    } else {
      // (No snapshot looks at it: it belongs to no version but the one that ends.)
      if (table != nullptr) edit.retire(table, &delete_table, edit.version);
      core_->newest.store(other.release(), std::memory_order_release);
    }
    core_->current.store(next.release(), std::memory_order_seq_cst);
    core_->changes.store(before + 2, std::memory_order_seq_cst);
  }

  static void update(NewestTable& table, const PreparedChange& change) {
    if (change.changes_nothing()) return;
    if (!change.after) {
      if (change.before) table.erase(change.before.header());
    } else if (change.before) {
      table.replace(change.before.header(), change.after.header());
    } else {
      table.insert(change.after.header());
    }
  }

  static std::unique_ptr<NewestTable> table_of(const State& state) {
    std::vector<const api::detail::ObjectHeader*> objects;
    objects.reserve(state.size);
    for (ObjectTrie::Cursor cursor(state.objects); cursor.get() != nullptr; cursor.next())
      objects.push_back(cursor.get()->header);
    return std::make_unique<NewestTable>(objects);
  }

  const std::shared_ptr<StoreCore> core_;
  std::mutex turn_;
  bool table_holds_all_ = true;  // guarded by turn_; false once an address did not fit
  std::unordered_map<const void*, std::uint32_t>
      hashes_;  // guarded by turn_; with a key function only
  mutable std::atomic<std::uint64_t> index_failures_{0};
};

Indexer::Indexer(Indexers indexers) : impl_(std::make_unique<Impl>(KeyFunc{}, indexers)) {}
Indexer::Indexer(KeyFunc key_func, Indexers indexers)
    : impl_(std::make_unique<Impl>(std::move(key_func), indexers)) {}
Indexer::~Indexer() = default;

api::Object Indexer::put(api::Object object) {
  const StoreChange change{StoreChange::Type::kPut, std::move(object)};
  return std::move(impl_->apply({&change, 1}, std::nullopt).front());
}

api::Object Indexer::remove(const api::Object& object) {
  const StoreChange change{StoreChange::Type::kRemove, object};
  return std::move(impl_->apply({&change, 1}, std::nullopt).front());
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
  (*state.definitions)[state.index_of(index)].function(object, values);
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
  const auto definitions = impl_->read([](const State& state) { return state.definitions; });
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
  const auto definitions = impl_->read([](const State& state) { return state.definitions; });
  std::vector<std::string> out;
  for (const auto& definition : *definitions) out.push_back(definition.name);
  return out;
}

std::uint64_t Indexer::index_failures() const { return impl_->index_failures(); }

}  // namespace lookout::cache
