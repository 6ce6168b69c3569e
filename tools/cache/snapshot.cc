#include "lookout/tools/cache/snapshot.h"

#include <variant>

#include "lookout/api/detail/object_header.h"
#include "tools/cache/store_state.h"

namespace lookout::cache {
namespace detail {

/// Iterates over all slots, or over one bucket of an index.
///
/// Objects are scattered in memory, so an iteration would mostly wait for memory. Therefore it
/// prefetches some objects ahead of its reader: first the slot, later the header of the object, and
/// finally the labels that the header points to.
class CursorImpl {
 public:
  using Cursor = std::variant<Slots::Cursor, PlaceTrie::Cursor>;

  CursorImpl(std::shared_ptr<const Pin> pin, Cursor cursor)
      : pin_(std::move(pin)), cursor_(cursor) {
    for (unsigned i = 0; i < kAtFirst; ++i) fetch();
    pass_empty();
  }
  const api::Object* get() const {
    return read_ == fetched_ ? nullptr : &object_of(*ahead_[read_ % kAhead]);
  }
  void next() {
    step();
    pass_empty();
  }

 private:
  static constexpr unsigned kAhead = 32;
  static constexpr unsigned kAtFirst = 4;
  static constexpr unsigned kHeadersAhead = 8;
  static constexpr unsigned kLabelsAhead = 20;
  static constexpr std::size_t kLine = 64;

  void step() {
    ++read_;
    fetch();
    // Far ahead only if the reader continues.
    if (fetched_ - read_ < kAhead) fetch();
  }
  /// An index may refer to an empty slot, if its function returned different values for an object and
  /// Slot::filing() did not detect it.
  void pass_empty() {
    while (read_ != fetched_ && ahead_[read_ % kAhead]->header == nullptr) step();
  }

  void fetch() {
    const Slot* const slot =
        std::visit([this](auto& cursor) { return this->take(cursor); }, cursor_);
    if (slot == nullptr) return;
    ahead_[fetched_ % kAhead] = slot;
    const std::size_t ahead = fetched_ - read_;
    ++fetched_;
    if (ahead >= kHeadersAhead) __builtin_prefetch(earlier(kHeadersAhead)->header);
    if (ahead >= kLabelsAhead) {
      const auto* header = earlier(kLabelsAhead)->header;
      if (header == nullptr) return;
      const std::uint8_t* labels = header->body() + header->labels;
      __builtin_prefetch(labels);
      __builtin_prefetch(labels + kLine);
    }
  }
  const Slot* earlier(unsigned by) const { return ahead_[(fetched_ - 1 - by) % kAhead]; }

  static const Slot* take(Slots::Cursor& cursor) {
    const Slot* const out = cursor.get();
    if (out != nullptr) cursor.next();
    return out;
  }
  const Slot* take(PlaceTrie::Cursor& cursor) const {
    const Place* const place = cursor.get();
    if (place == nullptr) return nullptr;
    const Slot* const out = &pin_->state->slots[place->slot];
    __builtin_prefetch(out);
    cursor.next();
    return out;
  }

  const std::shared_ptr<const Pin> pin_;
  Cursor cursor_;
  const Slot* ahead_[kAhead] = {};
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
    return iterator(
        std::make_unique<detail::CursorImpl>(pin_, detail::Slots::Cursor(pin_->state->slots)));
  }
  const auto* bucket = static_cast<const detail::Bucket*>(bucket_);
  return iterator(
      std::make_unique<detail::CursorImpl>(pin_, detail::PlaceTrie::Cursor(bucket->places)));
}

Snapshot::Snapshot(std::shared_ptr<const Pin> pin) : pin_(std::move(pin)) {}

std::size_t Snapshot::size() const { return pin_ ? pin_->state->size : 0; }

api::Object Snapshot::get(std::string_view ns, std::string_view name) const {
  if (!pin_) return {};
  const auto found = pin_->core->find(*pin_->state, ns, name);
  return detail::object_of(found.header);
}

api::Object Snapshot::get_by_key(std::string_view key) const {
  if (!pin_) return {};
  const auto found = pin_->core->find_key(*pin_->state, key);
  return detail::object_of(found.header);
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
  detail::BucketTrie::Cursor cursor(pin_->state->indexes->roots[pin_->state->index_of(index)]);
  for (; cursor.get() != nullptr; cursor.next()) out.emplace_back((*cursor.get())->value());
  return out;
}

bool Snapshot::has_index(std::string_view index) const {
  if (!pin_) return false;
  for (const auto& definition : pin_->state->definitions()) {
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
