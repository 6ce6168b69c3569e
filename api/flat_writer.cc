#include "lookout/api/detail/flat_writer.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/object_header.h"
#include "lookout/api/error.h"
#include "lookout/api/object.h"
#include "lookout/api/symbols.h"

namespace lookout::api::detail {

namespace {

/// An inline memcpy for short texts, which most are.
inline void copy(std::uint8_t* out, const char* in, std::size_t n) {
  const auto words = [&](auto first) {
    auto last = first;
    std::memcpy(&first, in, sizeof first);
    std::memcpy(&last, in + n - sizeof last, sizeof last);
    std::memcpy(out, &first, sizeof first);
    std::memcpy(out + n - sizeof last, &last, sizeof last);
  };
  struct Sixteen {
    std::uint64_t words[2];
  };
  if (n > 32) {
    std::memcpy(out, in, n);
  } else if (n >= 16) {
    words(Sixteen{});
  } else if (n >= 8) {
    words(std::uint64_t{});
  } else if (n >= 4) {
    words(std::uint32_t{});
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::uint8_t>(in[i]);
  }
}

/// Writes a text after its head: `short_head` plus the size or, for more than `max_short` bytes,
/// `long_head` and the size. Returns the number of bytes, at most text.size() + 11. (Inline: most
/// names and values come here.)
[[gnu::always_inline]] inline std::size_t write_text(std::uint8_t* out, std::uint8_t short_head,
                                                     std::size_t max_short, std::uint8_t long_head,
                                                     std::string_view text) {
  std::size_t n = 1;
  if (text.size() <= max_short) {
    out[0] = static_cast<std::uint8_t>(short_head + text.size());
  } else {
    out[0] = long_head;
    n += write_varint(out + 1, text.size());
  }
  copy(out + n, text.data(), text.size());
  return n + text.size();
}

/// The first eight bytes, padded with zeroes, as a number with the same order. Equal numbers do not
/// imply equal texts.
inline std::uint64_t prefix_of(std::string_view text) {
  std::uint64_t word = 0;
  if (text.size() >= sizeof word && std::endian::native == std::endian::little) {
    std::memcpy(&word, text.data(), sizeof word);
    return __builtin_bswap64(word);
  }
  if (text.size() >= 4 && std::endian::native == std::endian::little) {
    // The last four bytes may overlap the first four.
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + text.size() - sizeof last, sizeof last);
    return std::uint64_t{__builtin_bswap32(first)} << 32 | std::uint64_t{__builtin_bswap32(last)}
                                                               << (64 - 8 * text.size());
  }
  for (std::size_t i = 0; i < std::min(text.size(), sizeof word); ++i)
    word |= std::uint64_t{static_cast<unsigned char>(text[i])} << (56 - 8 * i);
  return word;
}

/// Content is moved by each enclosing container whose length needs a different number of bytes than
/// was reserved. From this depth on, the reserved size is right for 16 KB to 2 MB: moving less is
/// cheap, and an API server stores no more. Otherwise, a large text below 10,000 levels would be
/// moved 10,000 times.
constexpr std::size_t kDeep = 64;
constexpr std::size_t kDeepRoom = 3;

inline std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

}  // namespace

void FlatWriter::Buffer::grow(std::size_t size, std::size_t kept) {
  auto larger = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  if (kept != 0) std::memcpy(larger.get(), bytes_.get(), kept);
  bytes_ = std::move(larger);
  size_ = size;
}

void FlatWriter::grow(std::size_t n) {
  buffer_.grow(std::max(buffer_.size() * 2, size_ + n + 4096), size_);
}

inline void FlatWriter::put(const void* data, std::size_t n) {
  if (n == 0) return;
  std::memcpy(reserve(n), data, n);
  size_ += n;
}

FlatWriter& FlatWriter::of_this_thread() {
  thread_local FlatWriter writer;
  writer.clear();  // an exception may have left data
  return writer;
}

void FlatWriter::restart() {
  size_ = 0;
  moved_ = 0;
  depth_ = 0;
}

void FlatWriter::clear() {
  // Do not keep the memory of a huge object.
  constexpr std::size_t kKept = 1u << 20;
  if (buffer_.size() > kKept) buffer_ = {};
  if (scratch_.capacity() > kKept) scratch_ = {};
  restart();
  default_type({}, {});
}

inline void FlatWriter::begin(bool array) {
  if (depth_ == frames_.size()) frames_.resize(2 * depth_ + 16);
  std::uint8_t place = 0;
  if (depth_ > 0) {
    const Frame& outer = innermost();
    // The last byte of the key, or a number for the elements of an array.
    place = outer.array ? static_cast<std::uint8_t>(2 * outer.place + 1) : buffer_[size_ - 1];
  }
  const std::size_t room = depth_ < kDeep ? rooms_[place] : kDeepRoom;
  Frame& frame = frames_[depth_++];
  frame.start = size_;
  frame.room = room;
  frame.place = place;
  frame.array = array;
  frame.last_order = 0;
  frame.unsorted = false;
  frame.has_field_set_key = false;
  reserve(1 + room);
  size_ += 1 + room;
}

inline void FlatWriter::end(const Heads& heads) {
  const Frame& frame = frames_[--depth_];
  const std::size_t begin = frame.start + 1 + frame.room;
  const std::size_t length = size_ - begin;
  const bool is_short = length <= heads.max_short;
  const std::size_t room = is_short ? 0 : varint_size(length);
  rooms_[frame.place] = static_cast<std::uint8_t>(room);
  if (room != frame.room) {
    const std::size_t at = frame.start + 1 + room;
    if (at > begin) reserve(at - begin);
    std::memmove(buffer_.data() + at, buffer_.data() + begin, length);
    moved_ += length;
    size_ = at + length;
  }
  std::uint8_t* const tag = buffer_.data() + frame.start;
  if (is_short) {
    *tag = static_cast<std::uint8_t>(length == 0 ? std::size_t{heads.empty}
                                                 : heads.first_short + length - 1);
  } else {
    *tag = heads.any;
    write_varint(tag + 1, length);
  }
}

void FlatWriter::begin_object() {
  const bool root = depth_ == 0;
  begin();
  if (root && !default_kind_.empty()) {
    key(sym::kKind);
    string(default_kind_);
    key(sym::kApiVersion);
    string(default_api_version_);
  }
}

void FlatWriter::end_object() {
  const Frame& frame = innermost();
  const std::size_t begin = frame.start + 1 + frame.room;
  if (frame.unsorted) sort_members(begin);
  end(frame.has_field_set_key && become_field_set(begin) ? kFieldSetHeads : kObjectHeads);
}

void FlatWriter::empty_object() { put(std::uint8_t{kTagEmptyObject}); }
void FlatWriter::begin_array() { begin(true); }
void FlatWriter::end_array() { end(kArrayHeads); }
void FlatWriter::begin_field_set() { begin(); }
void FlatWriter::end_field_set() { end(kFieldSetHeads); }

bool FlatWriter::field_set_entry(std::string_view name) {
  if (!is_field_set_name(name)) return false;
  Frame& frame = innermost();
  const std::uint64_t prefix = prefix_of(name);
  if (frame.last_order != 0 && prefix <= frame.last_prefix) {
    if (prefix < frame.last_prefix ||
        read_field_set_entry(buffer_.data() + frame.last_key).name >= name)
      return false;
  }
  frame.last_order = kInlineOrder;
  frame.last_prefix = prefix;
  frame.last_key = size_;
  size_ += write_field_set_name(reserve(11 + name.size()), name);
  return true;
}

/// Rewrites the members from `begin` on as entries of a field set, if possible.
bool FlatWriter::become_field_set(std::size_t begin) {
  scratch_.clear();
  const std::uint8_t* const end = buffer_.data() + size_;
  for (const std::uint8_t* p = buffer_.data() + begin; p < end;) {
    const Key key = read_key(p);
    const std::string_view name = key.text();
    const bool nested = is_field_set(key.end);
    if (!is_field_set_name(name) || (!nested && *key.end != kTagEmptyObject)) return false;
    p = skip_value(key.end);
    const std::size_t at = scratch_.size();
    scratch_.resize(at + 11 + name.size());
    scratch_.resize(at + write_field_set_name(scratch_.data() + at, name));
    if (!nested) continue;
    scratch_[at] |= kSetNested;
    scratch_.insert(scratch_.end(), key.end, p);
  }
  size_ = begin;
  put(scratch_.data(), scratch_.size());
  moved_ += 2 * scratch_.size();
  return true;
}

[[gnu::always_inline]] inline void FlatWriter::note_key(std::uint32_t order, std::string_view text,
                                                        std::size_t at) {
  Frame& frame = innermost();
  if (order == kInlineOrder) {
    const std::uint64_t prefix = prefix_of(text);
    if (frame.last_order == kInlineOrder && prefix <= frame.last_prefix) {
      frame.unsorted |=
          prefix < frame.last_prefix || read_key(buffer_.data() + frame.last_key).text() >= text;
    }
    frame.last_prefix = prefix;
    frame.last_key = at;
  } else if (order <= frame.last_order) {
    // (Perhaps the same schema field twice.)
    frame.unsorted = true;
  }
  frame.last_order = order;
}

void FlatWriter::key(std::string_view name) {
  const std::uint16_t symbol = find_symbol(name);
  const std::size_t at = size_;
  if (symbol != kNoSymbol) {
    const EncodedKey encoded = encode_symbol_key(symbol);
    std::memcpy(reserve(2), encoded.bytes, 2);
    size_ += encoded.size;
    if (const std::uint16_t rank = symbol_rank(symbol); rank != kNoRank) {
      note_key(rank + 1u, name, at);
      return;
    }
    // (No schema field has such a name.)
    innermost().has_field_set_key |= is_field_set_name(name);
    note_key(kInlineOrder, name, at);
    return;
  }
  innermost().has_field_set_key |= is_field_set_name(name);
  note_key(kInlineOrder, name, at);
  size_ += write_text(reserve(11 + name.size()), kKeyInline, kMaxShortKey, kKeyLong, name);
}

void FlatWriter::null() { put(std::uint8_t{kTagNull}); }
void FlatWriter::boolean(bool value) {
  put(value ? std::uint8_t{kTagTrue} : std::uint8_t{kTagFalse});
}

void FlatWriter::integer(std::int64_t value) {
  if (value >= 0 && static_cast<std::uint64_t>(value) < kSmallInts) {
    put(static_cast<std::uint8_t>(kTagSmallInt + value));
    return;
  }
  std::uint8_t* out = reserve(11);
  out[0] = kTagInt;
  size_ += 1 + write_varint(out + 1, zigzag(value));
}

void FlatWriter::uinteger(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    integer(static_cast<std::int64_t>(value));
    return;
  }
  put(std::uint8_t{kTagBigUint});
  put(&value, sizeof value);
}

void FlatWriter::real(double value) {
  put(std::uint8_t{kTagDouble});
  put(&value, sizeof value);
}

void FlatWriter::number(std::string_view text) {
  const char* end = text.data() + text.size();
  const bool negative = text[0] == '-';
  if (text.find_first_of(".eE") == std::string_view::npos && text != "-0") {
    if (negative) {
      std::int64_t value = 0;
      if (std::from_chars(text.data(), end, value).ec == std::errc{}) return integer(value);
    } else {
      std::uint64_t value = 0;
      if (std::from_chars(text.data(), end, value).ec == std::errc{}) return uinteger(value);
    }
  }
  // A double has at most 17 significant digits. Numbers with more or outside its range stay text.
  const std::string_view mantissa = text.substr(0, text.find_first_of("eE"));
  std::size_t digits = 0;
  bool nonzero = false;
  for (const char c : mantissa) {
    if (c < '0' || c > '9') continue;
    nonzero |= c != '0';
    if (nonzero) ++digits;
  }
  double value = 0;
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && parsed == end && digits <= 17 && std::isfinite(value) &&
      (value != 0 || !nonzero))
    return real(value);
  std::uint8_t* out = reserve(11);
  out[0] = kTagRawNumber;
  size_ += 1 + write_varint(out + 1, text.size());
  put(text.data(), text.size());
}

void FlatWriter::string(std::string_view value) {
  if (const std::uint16_t symbol = find_symbol(value); symbol != kNoSymbol) {
    size_ += write_symbol_string(reserve(2), symbol);
    return;
  }
  plain_string(value);
}

void FlatWriter::plain_string(std::string_view value) {
  size_ +=
      write_text(reserve(11 + value.size()), kTagShortString, kMaxShortString, kTagString, value);
}

void FlatWriter::value(Value copied) {
  if (!copied.exists()) return null();
  may_repeat(copied.data()) ? write_out(copied.data()) : container(copied);
}

void FlatWriter::container(Value copied) {
  put(copied.data(), static_cast<std::size_t>(skip_value(copied.data()) - copied.data()));
}

/// Copies a value that may contain references to earlier strings.
void FlatWriter::write_out(const std::uint8_t* p) {
  struct Open {
    const std::uint8_t* end;
    bool object;
  };
  std::vector<Open> open;
  for (;;) {
    const Range members = object_contents(p);
    const Range elements = array_contents(p);
    if (members.begin != members.end) {
      begin();
      open.push_back({members.end, true});
      p = members.begin;
    } else if (elements.begin != elements.end) {
      begin(true);
      open.push_back({elements.end, false});
      p = elements.begin;
    } else {
      *p == kTagAgain ? plain_string(Value(p).as_string()) : container(Value(p));
      p = skip_value(p);
    }
    while (!open.empty() && p == open.back().end) {
      end(open.back().object ? kObjectHeads : kArrayHeads);
      open.pop_back();
    }
    if (open.empty()) return;
    if (open.back().object) {
      const std::uint8_t* const key = p;
      p = skip_key(p);
      put(key, static_cast<std::size_t>(p - key));
    }
  }
}

void FlatWriter::sort_members(std::size_t begin) {
  constexpr unsigned kOrderShift = 47;  // ranks have 17 bits
  entries_.clear();
  const std::uint8_t* const members = buffer_.data() + begin;
  const std::uint8_t* const end = buffer_.data() + size_;
  for (const std::uint8_t* p = members; p < end;) {
    const Key key = read_key(p);
    const std::uint16_t rank = key.symbol == kNoSymbol ? kNoRank : symbol_rank(key.symbol);
    const std::uint64_t order = rank == kNoRank ? std::uint64_t{kInlineOrder} << kOrderShift |
                                                      prefix_of(key.text()) >> (64 - kOrderShift)
                                                : std::uint64_t{rank + 1u} << kOrderShift;
    const std::uint8_t* next = skip_value(key.end);
    entries_.push_back(
        {order, static_cast<std::size_t>(p - members), static_cast<std::size_t>(next - members)});
    p = next;
  }
  const auto name = [&](const Entry& entry) { return read_key(members + entry.begin).text(); };
  const auto is_less = [&](const Entry& a, const Entry& b) {
    if (a.order != b.order) return a.order < b.order;
    const int names = name(a).compare(name(b));
    return names != 0 ? names < 0 : a.begin < b.begin;
  };
  constexpr std::size_t kFew = 32;
  if (entries_.size() > kFew) {
    std::sort(entries_.begin(), entries_.end(), is_less);
  } else {
    // Nearly all objects are already in order.
    for (std::size_t i = 1; i < entries_.size(); ++i) {
      const Entry entry = entries_[i];
      std::size_t at = i;
      for (; at > 0 && is_less(entry, entries_[at - 1]); --at) entries_[at] = entries_[at - 1];
      entries_[at] = entry;
    }
  }
  scratch_.resize(size_ - begin);
  std::uint8_t* out = scratch_.data();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    // The last one of several members with the same name wins.
    if (i + 1 < entries_.size() && entries_[i + 1].order == entry.order &&
        name(entries_[i + 1]) == name(entry))
      continue;
    const std::size_t size = entry.end - entry.begin;
    copy(out, reinterpret_cast<const char*>(members + entry.begin), size);
    out += size;
  }
  const auto size = static_cast<std::size_t>(out - scratch_.data());
  if (size != 0) std::memcpy(buffer_.data() + begin, scratch_.data(), size);
  size_ = begin + size;
  moved_ += 2 * size;
}

namespace {

std::uint16_t offset_of(Value value, const std::uint8_t* body) {
  if (!value.exists()) return 0;
  const auto offset = static_cast<std::size_t>(value.data() - body);
  return offset < ObjectHeader::kFar ? static_cast<std::uint16_t>(offset) : ObjectHeader::kFar;
}

/// Calls visit(symbol, value) for the members whose names are symbols.
template <class Visit>
void visit_symbols(Range members, const Visit& visit) {
  for (const std::uint8_t* p = members.begin; p < members.end;) {
    const Key key = read_key(p);
    if (key.symbol != kNoSymbol) visit(key.symbol, Value(key.end));
    p = skip_value(key.end);
  }
}

}  // namespace

Object FlatWriter::finish() {
  if (size_ > std::numeric_limits<std::uint32_t>::max()) {
    clear();
    throw DecodeError("the object is larger than 4 GiB");
  }
  const Range plain{buffer_.data(), buffer_.data() + size_};
  const std::size_t size = size_ - strings_.find(plain);
  void* memory = std::malloc(sizeof(ObjectHeader) + size);
  if (memory == nullptr) throw std::bad_alloc();
  auto* header = new (memory) ObjectHeader;
  header->size = static_cast<std::uint32_t>(size);
  strings_.copy(plain, static_cast<std::uint8_t*>(memory) + sizeof(ObjectHeader));
  clear();

  // Find the header's offsets by iterating over the fields of the object and of its metadata.
  const std::uint8_t* body = header->body();
  Value metadata;
  visit_symbols(object_contents(body), [&](std::uint16_t symbol, Value value) {
    if (symbol == sym::kMetadata.id) {
      header->metadata = offset_of(value, body);
      metadata = value;
    } else if (symbol == sym::kSpec.id) {
      header->spec = offset_of(value, body);
      header->node_name = offset_of(value[sym::kNodeName], body);
    } else if (symbol == sym::kStatus.id) {
      header->status = offset_of(value, body);
      header->pod_ip = offset_of(value[sym::kPodIP], body);
    }
  });
  std::string_view ns;
  std::string_view name;
  visit_symbols(object_contents(metadata.data()), [&](std::uint16_t symbol, Value value) {
    if (symbol == sym::kName.id) {
      header->name = offset_of(value, body);
      name = value.as_string();
    } else if (symbol == sym::kNamespace.id) {
      header->ns = offset_of(value, body);
      ns = value.as_string();
    } else if (symbol == sym::kUid.id) {
      header->uid = offset_of(value, body);
    } else if (symbol == sym::kResourceVersion.id) {
      header->resource_version = offset_of(value, body);
    } else if (symbol == sym::kLabels.id) {
      header->labels = offset_of(value, body);
    }
  });
  header->key_hash = api::key_hash(ns, name);
  if (projection_ != nullptr) note_projected(header, std::exchange(projection_, nullptr));
  return Object::adopt(header);
}

}  // namespace lookout::api::detail
