// FlatWriter: builds the flat form of an object. Every codec uses it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/projected_objects.h"
#include "lookout/api/detail/repeated_strings.h"
#include "lookout/api/symbol.h"
#include "lookout/api/value.h"

namespace lookout::api {
class Object;
}

namespace lookout::api::detail {

/// Takes the events of a parser, with members in any order, and makes an Object. Reusable: the
/// buffers stay allocated between objects. Not thread-safe. The caller must send balanced events,
/// with one object value at the root.
class FlatWriter {
 public:
  /// The writer of this thread, empty. For writing one object at a time.
  static FlatWriter& of_this_thread();

  /// Discards everything written since the last finish().
  void clear();

  /// Like clear(), but keeps default_type(), because the same object is about to be written again.
  void restart();

  /// Sets the apiVersion and kind for the next object if it has none of its own; items of a list
  /// have none. The views must stay valid until begin_object(). finish() and clear() reset it.
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
  /// The same as begin_object() and end_object() with no members. Only below the root.
  void empty_object();
  void begin_array();
  void end_array();
  /// An object whose names and values are those of a field set, see encoding.h: the same as
  /// begin_object(), key() and so on, for members that come in order. Not at the root.
  void begin_field_set();
  void end_field_set();
  /// Writes an entry with the value {}. Returns false and writes nothing if field sets cannot have the
  /// name, or if it is not greater than the previous name.
  bool field_set_entry(std::string_view name);
  /// Gives the last entry another value: the field set that is written next.
  void nest_in_entry() { buffer_[innermost().last_key] |= kSetNested; }
  void key(std::string_view name);
  void key(Symbol name) {
    const std::uint16_t rank = symbol_rank(name.id);
    if (rank == kNoRank) return key(name.text());
    // (A repeated field is out of order, too.)
    Frame& frame = innermost();
    frame.unsorted |= rank < frame.last_order;
    frame.last_order = rank + 1u;
    const EncodedKey encoded = encode_symbol_key(name.id);
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
  /// Like string(), for text that cannot be a symbol.
  void plain_string(std::string_view value);
  /// Copies a value of another object, with its contents.
  void value(Value copied);
  /// Copies a result of closed_container().
  void container(Value copied);

  /// The encoded form of the object or array that was closed last, if nothing was written since.
  std::string_view closed_container() const {
    const std::size_t start = frames_[depth_].start;
    return {reinterpret_cast<const char*>(buffer_.data()) + start, size_ - start};
  }

  /// A position to return to: rewind() discards everything written since, including containers that
  /// were opened.
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
  /// Size of the output buffer in bytes.
  std::size_t capacity() const { return buffer_.size(); }
  /// Bytes written so far.
  std::size_t size() const { return size_; }
  /// True if members have been moved so often that the input must be hostile: closing a container
  /// may move its contents, once for each of n nested containers. For the largest objects at the
  /// greatest depth, this would take a minute.
  bool overworked() const { return moved_ / 64 > size_ + kMovedFreely / 64; }

  /// Returns the finished object and clears the writer.
  Object finish();

 private:
  struct Frame {
    std::size_t start = 0;     // of the tag byte
    std::size_t last_key = 0;  // offset of the last key or entry
    std::size_t room = 0;      // bytes after the tag for the length
    std::uint8_t place = 0;    // in rooms_
    bool array = false;
    std::uint64_t last_prefix = 0;  // of the name, if the order depends on it
    std::uint32_t last_order =
        0;                  // 0: none yet; rank + 1; kInlineOrder for names that are sorted by text
    bool unsorted = false;  // a key came out of order
    bool has_field_set_key = false;  // a key is a name of field sets
  };
  struct Entry {
    std::uint64_t order;  // and the first bytes of the name, if the order depends on it
    std::size_t begin;
    std::size_t end;
  };
  /// Uninitialised bytes, unlike those of a vector: many writers write only one short object.
  class Buffer {
   public:
    std::uint8_t* data() { return bytes_.get(); }
    const std::uint8_t* data() const { return bytes_.get(); }
    std::uint8_t& operator[](std::size_t at) { return bytes_[at]; }
    std::size_t size() const { return size_; }
    /// Keeps the first `kept` bytes.
    void grow(std::size_t size, std::size_t kept);

   private:
    std::unique_ptr<std::uint8_t[]> bytes_;
    std::size_t size_ = 0;
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
  /// The tags of one kind of container.
  struct Heads {
    Tag empty;
    Tag any;
    Tag first_short;
    std::size_t max_short;
  };
  static constexpr Heads kObjectHeads{kTagEmptyObject, kTagObject, kTagShortObject,
                                      kMaxShortObject};
  static constexpr Heads kArrayHeads{kTagEmptyArray, kTagArray, kTagShortArray, kMaxShortArray};
  static constexpr Heads kFieldSetHeads{kTagEmptyObject, kTagFieldSet, kTagShortFieldSet,
                                        kMaxShortFieldSet};

  void begin(bool array = false);
  void end(const Heads& heads);
  bool become_field_set(std::size_t begin);
  void note_key(std::uint32_t order, std::string_view text, std::size_t at);
  Frame& innermost() { return frames_[depth_ - 1]; }
  void sort_members(std::size_t begin);
  void write_out(const std::uint8_t* value);

  Buffer buffer_;
  std::size_t size_ = 0;
  std::size_t moved_ = 0;
  // The bytes that the length of the last container at this place took (usually: after the same key).
  // A container whose length takes another number of bytes is moved.
  std::array<std::uint8_t, 256> rooms_{};
  std::vector<Frame> frames_;  // the first depth_ belong to the open containers
  std::size_t depth_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint8_t> scratch_;
  RepeatedStrings strings_;
  const ProjectionNode* projection_ = nullptr;
  std::string_view default_api_version_;
  std::string_view default_kind_;
};

}  // namespace lookout::api::detail
