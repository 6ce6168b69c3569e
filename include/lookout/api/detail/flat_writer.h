// Writes the flat form of an object: the one way in for every codec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/projected_objects.h"
#include "lookout/api/symbol.h"
#include "lookout/api/value.h"

namespace lookout::api {
class Object;
}

namespace lookout::api::detail {

/// Takes the events of a parser (in any order of members) and makes an Object. Reusable: the
/// buffers stay between objects. Not thread-safe. The caller sees to it that the events are
/// balanced and that one object value is at the root.
class FlatWriter {
 public:
  /// Forgets what has been written since the last finish().
  void clear();

  /// The same, but for default_type(): the same object is about to be written once more.
  void restart();

  /// The next object gets this apiVersion and kind where it does not bring its own (the items of a
  /// list come without). The views must be good until its begin_object(). Cleared by finish() and
  /// clear().
  void default_type(std::string_view api_version, std::string_view kind) {
    default_api_version_ = api_version;
    default_kind_ = kind;
  }

  /// The projection of the next object; null: none. Cleared by finish().
  void projected_by([[maybe_unused]] const ProjectionNode* root) {
    if constexpr (kProjectionsAreChecked) projection_ = root;
  }

  void begin_object();
  void end_object();
  /// As begin_object() and end_object() with nothing between them, below the root.
  void empty_object();
  void begin_array();
  void end_array();
  void key(std::string_view name);
  void key(Symbol name) {
    const std::uint16_t rank = symbol_rank(name.id);
    if (rank == kNoRank) return key(name.text());
    // (A field that comes twice is not behind the one before it either.)
    Frame& frame = innermost();
    frame.unsorted |= rank < frame.last_order;
    frame.last_order = rank + 1u;
    const EncodedKey encoded = encode_symbol_key(name.id, false);
    std::uint8_t* const out = reserve(sizeof encoded.bytes);
    out[0] = encoded.bytes[0];
    out[1] = encoded.bytes[1];
    size_ += encoded.size;
  }
  void null();
  void boolean(bool value);
  void integer(std::int64_t value);
  void uinteger(std::uint64_t value);
  void real(double value);
  /// A number from its text, which must be a valid JSON number: stored as integer or double where
  /// those hold it, else as text.
  void number(std::string_view text);
  void string(std::string_view value);
  /// The same for what cannot be a symbol.
  void plain_string(std::string_view value);
  /// A copy of a value of some object, with everything that is in it.
  void value(Value copied);

  /// A place to come back to: what is written from here on, containers that are opened included,
  /// can be forgotten.
  struct Mark {
    std::size_t size;
    std::size_t depth;
  };
  Mark mark() const { return {size_, depth_}; }
  void rewind(Mark mark) {
    size_ = mark.size;
    depth_ = mark.depth;
  }

  /// How many containers are open.
  std::size_t depth() const { return depth_; }
  /// Bytes that it holds for what is to be written.
  std::size_t capacity() const { return buffer_.size(); }
  /// Bytes written so far.
  std::size_t size() const { return size_; }
  /// Whether so much has been moved about that nobody can mean the object well: what lies under n
  /// containers may be moved n times when they are closed, which for the largest objects at the
  /// greatest depth would take a minute.
  bool overworked() const { return moved_ / 64 > size_ + kMovedFreely / 64; }

  /// The finished object; the writer is clear again.
  Object finish();

 private:
  struct Frame {
    std::size_t start = 0;          // of the tag byte
    std::size_t last_key = 0;       // offset of the last key
    std::uint64_t last_prefix = 0;  // of its name, if that counts for the order
    std::uint32_t last_order =
        0;  // 0 none yet; rank + 1; kInlineOrder for names that are sorted by their text
    bool unsorted = false;  // a key came that does not belong behind the one before it
  };
  struct Entry {
    std::uint32_t order;
    std::string_view text;
    const std::uint8_t* begin;
    const std::uint8_t* end;
  };
  static constexpr std::uint32_t kInlineOrder = 0x10000;
  static constexpr std::size_t kMovedFreely = std::size_t{1} << 30;

  std::uint8_t* reserve(std::size_t n) {
    if (buffer_.size() - size_ < n) grow(n);
    return buffer_.data() + size_;
  }
  void grow(std::size_t n);
  void put(std::uint8_t byte) {
    *reserve(1) = byte;
    ++size_;
  }
  void put(const void* data, std::size_t n);
  void begin(std::uint8_t tag);
  void end(std::uint8_t empty_tag);
  void note_key(std::uint32_t order, std::string_view text, std::size_t at);
  Frame& innermost() { return frames_[depth_ - 1]; }
  void sort_members(std::size_t begin);

  std::vector<std::uint8_t> buffer_;
  std::size_t size_ = 0;
  std::size_t moved_ = 0;
  std::vector<Frame> frames_;  // of the containers that are open, the first depth_ of these
  std::size_t depth_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint8_t> scratch_;
  const ProjectionNode* projection_ = nullptr;
  std::string_view default_api_version_;
  std::string_view default_kind_;
};

}  // namespace lookout::api::detail
