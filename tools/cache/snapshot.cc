#include "lookout/tools/cache/snapshot.h"

#include <variant>

#include "lookout/api/detail/object_header.h"
#include "tools/cache/store_state.h"

namespace lookout::cache {
namespace detail {

/// Walks over the main trie or over one bucket of an index.
///
/// Objects lie anywhere in memory, and waiting for each of them in turn is what a walk over many of
/// them would take its time for. So the walk is some objects ahead of its reader, and asks for the
/// header of an object and later, when that has come, for the labels that it points at.
class CursorImpl {
 public:
  CursorImpl(std::shared_ptr<const Pin> pin,
             std::variant<ObjectTrie::Cursor, SetTrie::Cursor> cursor)
      : pin_(std::move(pin)), cursor_(cursor) {
    for (unsigned i = 0; i < kAtFirst; ++i) fetch();
  }
  const api::Object* get() const {
    return read_ == fetched_ ? nullptr : &object_of(ahead_[read_ % kAhead]);
  }
  void next() {
    ++read_;
    fetch();
    // Far ahead only of those who read on.
    if (fetched_ - read_ < kAhead) fetch();
  }

 private:
  static constexpr unsigned kAhead = 32;
  static constexpr unsigned kAtFirst = 4;
  static constexpr unsigned kLabelsAhead = 12;

  void fetch() {
    std::visit(
        [this](auto& cursor) {
          const auto* entry = cursor.get();
          if (entry == nullptr) return;
          ahead_[fetched_ % kAhead].header = entry->header;
          __builtin_prefetch(entry->header);
          if (fetched_ - read_ >= kLabelsAhead) {
            const auto* earlier = ahead_[(fetched_ - kLabelsAhead) % kAhead].header;
            const std::uint8_t* labels = earlier->body() + earlier->labels;
            __builtin_prefetch(labels);
            __builtin_prefetch(labels + 64);
          }
          ++fetched_;
          cursor.next();
        },
        cursor_);
  }

  std::shared_ptr<const Pin> pin_;
  std::variant<ObjectTrie::Cursor, SetTrie::Cursor> cursor_;
  SetEntry ahead_[kAhead] = {};
  std::size_t fetched_ = 0;
  std::size_t read_ = 0;
};

}  // namespace detail

using detail::Pin;

ObjectRange::iterator::iterator() = default;
ObjectRange::iterator::iterator(iterator&&) noexcept = default;
ObjectRange::iterator& ObjectRange::iterator::operator=(iterator&&) noexcept = default;
ObjectRange::iterator::~iterator() = default;
ObjectRange::iterator::iterator(std::unique_ptr<detail::CursorImpl> cursor)
    : cursor_(std::move(cursor)) {}

const api::Object& ObjectRange::iterator::operator*() const { return *cursor_->get(); }
ObjectRange::iterator& ObjectRange::iterator::operator++() {
  cursor_->next();
  return *this;
}
bool ObjectRange::iterator::at_end() const {
  return cursor_ == nullptr || cursor_->get() == nullptr;
}

ObjectRange::ObjectRange(std::shared_ptr<const Pin> pin, const void* bucket, std::size_t size)
    : pin_(std::move(pin)), bucket_(bucket), size_(size) {}

ObjectRange::iterator ObjectRange::begin() const {
  if (size_ == 0) return {};
  if (bucket_ == nullptr) {
    return iterator(std::make_unique<detail::CursorImpl>(
        pin_, detail::ObjectTrie::Cursor(pin_->state->objects)));
  }
  const auto* bucket = static_cast<const detail::Bucket*>(bucket_);
  return iterator(
      std::make_unique<detail::CursorImpl>(pin_, detail::SetTrie::Cursor(bucket->objects)));
}

Snapshot::Snapshot(std::shared_ptr<const Pin> pin) : pin_(std::move(pin)) {}

std::size_t Snapshot::size() const { return pin_ ? pin_->state->size : 0; }

api::Object Snapshot::get(std::string_view ns, std::string_view name) const {
  const auto* entry = pin_ ? pin_->core->find(*pin_->state, ns, name) : nullptr;
  return entry == nullptr ? api::Object{} : detail::object_of(*entry);
}

api::Object Snapshot::get_by_key(std::string_view key) const {
  const auto* entry = pin_ ? pin_->core->find_key(*pin_->state, key) : nullptr;
  return entry == nullptr ? api::Object{} : detail::object_of(*entry);
}

ObjectRange Snapshot::objects() const {
  return pin_ ? ObjectRange(pin_, nullptr, pin_->state->size) : ObjectRange{};
}

ObjectRange Snapshot::by_index(std::string_view index, std::string_view value) const {
  if (!pin_) return {};
  const detail::Bucket* bucket = pin_->state->bucket(pin_->state->index_of(index), value);
  return bucket == nullptr ? ObjectRange{} : ObjectRange(pin_, bucket, bucket->count);
}

std::vector<std::string> Snapshot::index_values(std::string_view index) const {
  std::vector<std::string> out;
  if (!pin_) return out;
  detail::BucketTrie::Cursor cursor(pin_->state->indexes[pin_->state->index_of(index)]);
  for (; cursor.get() != nullptr; cursor.next()) out.emplace_back((*cursor.get())->value());
  return out;
}

bool Snapshot::has_index(std::string_view index) const {
  if (!pin_) return false;
  for (const auto& definition : *pin_->state->definitions) {
    if (definition.name == index) return true;
  }
  return false;
}

const std::string& Snapshot::resource_version() const& {
  static const std::string kNone;
  return pin_ ? pin_->state->resource_version : kNone;
}

std::uint64_t Snapshot::version() const { return pin_ ? pin_->state->version : 0; }

}  // namespace lookout::cache
