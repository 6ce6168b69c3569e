#include "lookout/api/detail/flat_writer.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <tuple>
#include <utility>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/object_header.h"
#include "lookout/api/error.h"
#include "lookout/api/object.h"
#include "lookout/api/symbols.h"

namespace lookout::api::detail {

namespace {

/// memcpy for what is short, as most names and texts are: in place, in a few words.
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

/// The first eight bytes as a number that compares as they do; what is shorter is filled with
/// zeroes. Of two texts whose numbers are equal nothing is known.
inline std::uint64_t prefix_of(std::string_view text) {
  std::uint64_t word = 0;
  if (text.size() >= sizeof word && std::endian::native == std::endian::little) {
    std::memcpy(&word, text.data(), sizeof word);
    return __builtin_bswap64(word);
  }
  for (std::size_t i = 0; i < std::min(text.size(), sizeof word); ++i)
    word |= std::uint64_t{static_cast<unsigned char>(text[i])} << (56 - 8 * i);
  return word;
}

/// How many bytes a container's length most likely takes. What lies deep is moved by each container
/// around it that has guessed wrong: there, a length is guessed that is right for 16 KB to 2 MB, as
/// moving less is cheap and an API server stores no more. Else one large text at the bottom of
/// 10,000 levels would be moved 10,000 times.
inline std::size_t room_for_length(std::size_t depth) {
  constexpr std::size_t kDeep = 64;
  return depth < kDeep ? 1 : 3;
}

}  // namespace

void FlatWriter::grow(std::size_t n) {
  buffer_.resize(std::max(buffer_.size() * 2, size_ + n + 4096));
}

inline void FlatWriter::put(const void* data, std::size_t n) {
  if (n == 0) return;
  std::memcpy(reserve(n), data, n);
  size_ += n;
}

void FlatWriter::restart() {
  size_ = 0;
  moved_ = 0;
  depth_ = 0;
}

void FlatWriter::clear() {
  // One huge object is no reason to keep as much memory for the small ones that follow.
  constexpr std::size_t kKept = 1u << 20;
  if (buffer_.size() > kKept) buffer_ = {};
  if (scratch_.capacity() > kKept) scratch_ = {};
  restart();
  default_type({}, {});
}

inline void FlatWriter::begin(std::uint8_t tag) {
  if (depth_ == frames_.size()) frames_.resize(2 * depth_ + 16);
  const std::size_t room = room_for_length(depth_);
  Frame& frame = frames_[depth_++];
  frame.start = size_;
  frame.last_order = 0;
  frame.unsorted = false;
  std::uint8_t* out = reserve(1 + room);
  out[0] = tag;
  out[1] = 0;  // the length, until end() knows better
  size_ += 1 + room;
}

inline void FlatWriter::end(std::uint8_t empty_tag) {
  const Frame& frame = frames_[--depth_];
  const std::size_t room = room_for_length(depth_);
  const std::size_t length_at = frame.start + 1;
  const std::size_t begin = length_at + room;
  if (frame.unsorted) sort_members(begin);
  const std::size_t length = size_ - begin;
  if (length == 0) {
    buffer_[frame.start] = empty_tag;
    size_ = length_at;
    return;
  }
  if (length < 0x80 && room == 1) {
    buffer_[length_at] = static_cast<std::uint8_t>(length);
    return;
  }
  std::uint8_t varint[10];
  const std::size_t n = write_varint(varint, length);
  if (n != room) {
    if (n > room) reserve(n - room);
    std::memmove(buffer_.data() + length_at + n, buffer_.data() + begin, length);
    moved_ += length;
    size_ = length_at + n + length;
  }
  for (std::size_t i = 0; i < n; ++i) buffer_[length_at + i] = varint[i];
}

void FlatWriter::begin_object() {
  const bool root = depth_ == 0;
  begin(kTagObject);
  if (root && !default_kind_.empty()) {
    key(sym::kKind);
    string(default_kind_);
    key(sym::kApiVersion);
    string(default_api_version_);
  }
}

void FlatWriter::end_object() { end(kTagEmptyObject); }
void FlatWriter::empty_object() { put(std::uint8_t{kTagEmptyObject}); }
void FlatWriter::begin_array() { begin(kTagArray); }
void FlatWriter::end_array() { end(kTagEmptyArray); }

inline void FlatWriter::note_key(std::uint32_t order, std::string_view text, std::size_t at) {
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
  const bool managed = name.size() > 2 && name[0] == 'f' && name[1] == ':';
  const std::uint16_t symbol = find_symbol(managed ? name.substr(2) : name);
  const std::size_t at = size_;
  if (symbol != kNoSymbol) {
    const EncodedKey encoded = encode_symbol_key(symbol, managed);
    std::memcpy(reserve(2), encoded.bytes, 2);
    size_ += encoded.size;
    const std::uint16_t rank = managed ? kNoRank : symbol_rank(symbol);
    note_key(rank == kNoRank ? kInlineOrder : rank + 1u, name, at);
    return;
  }
  note_key(kInlineOrder, name, at);
  std::uint8_t* out = reserve(11 + name.size());
  std::size_t n = 1;
  if (name.size() <= kMaxShortKey) {
    out[0] = static_cast<std::uint8_t>(kKeyInline + name.size());
  } else {
    out[0] = kKeyLong;
    n += write_varint(out + 1, name.size());
  }
  copy(out + n, name.data(), name.size());
  size_ += n + name.size();
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
  // A double carries 17 significant digits at the most; what has more, or lies outside its range,
  // stays text.
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
    std::uint8_t* out = reserve(2);
    out[0] = static_cast<std::uint8_t>(kTagSymbol | symbol >> 8);
    out[1] = static_cast<std::uint8_t>(symbol);
    size_ += 2;
    return;
  }
  plain_string(value);
}

void FlatWriter::plain_string(std::string_view value) {
  std::uint8_t* out = reserve(11 + value.size());
  std::size_t n = 1;
  if (value.size() <= kMaxShortString) {
    out[0] = static_cast<std::uint8_t>(kTagShortString + value.size());
  } else {
    out[0] = kTagString;
    n += write_varint(out + 1, value.size());
  }
  copy(out + n, value.data(), value.size());
  size_ += n + value.size();
}

void FlatWriter::value(Value copied) {
  if (!copied.exists()) return null();
  put(copied.data(), static_cast<std::size_t>(skip_value(copied.data()) - copied.data()));
}

void FlatWriter::sort_members(std::size_t begin) {
  entries_.clear();
  const std::uint8_t* p = buffer_.data() + begin;
  const std::uint8_t* const end = buffer_.data() + size_;
  while (p < end) {
    const Key key = read_key(p);
    const std::uint16_t rank =
        key.symbol == kNoSymbol || key.managed ? kNoRank : symbol_rank(key.symbol);
    const std::uint8_t* next = skip_value(key.end);
    entries_.push_back({rank == kNoRank ? kInlineOrder : rank + 1u,
                        rank == kNoRank ? key.text() : std::string_view{}, p, next});
    p = next;
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.order, a.text, a.begin) < std::tie(b.order, b.text, b.begin);
  });
  scratch_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    // Of members with the same name, the last one counts.
    if (i + 1 < entries_.size() && entries_[i + 1].order == entry.order &&
        entries_[i + 1].text == entry.text)
      continue;
    scratch_.insert(scratch_.end(), entry.begin, entry.end);
  }
  if (!scratch_.empty()) std::memcpy(buffer_.data() + begin, scratch_.data(), scratch_.size());
  size_ = begin + scratch_.size();
  moved_ += 2 * scratch_.size();
}

namespace {

std::uint16_t offset_of(Value value, const std::uint8_t* body) {
  if (!value.exists()) return 0;
  const auto offset = static_cast<std::size_t>(value.data() - body);
  return offset < ObjectHeader::kFar ? static_cast<std::uint16_t>(offset) : ObjectHeader::kFar;
}

}  // namespace

Object FlatWriter::finish() {
  if (size_ > std::numeric_limits<std::uint32_t>::max()) {
    clear();
    throw DecodeError("the object is larger than 4 GiB");
  }
  void* memory = std::malloc(sizeof(ObjectHeader) + size_);
  if (memory == nullptr) throw std::bad_alloc();
  auto* header = new (memory) ObjectHeader;
  header->size = static_cast<std::uint32_t>(size_);
  std::memcpy(static_cast<std::uint8_t*>(memory) + sizeof(ObjectHeader), buffer_.data(), size_);
  clear();

  // A walk over the fields of the object, and one over metadata, find everything the header points
  // at.
  const std::uint8_t* body = header->body();
  Value metadata;
  const Range fields = contents(body, kTagObject);
  for (const std::uint8_t* p = fields.begin; p < fields.end;) {
    const Key key = read_key(p);
    const Value value(key.end);
    if (key.symbol != kNoSymbol && !key.managed) {
      if (key.symbol == sym::kMetadata.id) {
        header->metadata = offset_of(value, body);
        metadata = value;
      } else if (key.symbol == sym::kSpec.id) {
        header->spec = offset_of(value, body);
        header->node_name = offset_of(value[sym::kNodeName], body);
      } else if (key.symbol == sym::kStatus.id) {
        header->status = offset_of(value, body);
        header->pod_ip = offset_of(value[sym::kPodIP], body);
      }
    }
    p = skip_value(key.end);
  }
  std::string_view ns;
  std::string_view name;
  const Range range = contents(metadata.data(), kTagObject);
  for (const std::uint8_t* p = range.begin; p < range.end;) {
    const Key key = read_key(p);
    const Value value(key.end);
    if (key.symbol != kNoSymbol && !key.managed) {
      if (key.symbol == sym::kName.id) {
        header->name = offset_of(value, body);
        name = value.as_string();
      } else if (key.symbol == sym::kNamespace.id) {
        header->ns = offset_of(value, body);
        ns = value.as_string();
      } else if (key.symbol == sym::kUid.id) {
        header->uid = offset_of(value, body);
      } else if (key.symbol == sym::kResourceVersion.id) {
        header->resource_version = offset_of(value, body);
      } else if (key.symbol == sym::kLabels.id) {
        header->labels = offset_of(value, body);
      }
    }
    p = skip_value(key.end);
  }
  header->key_hash = api::key_hash(ns, name);
  if (projection_ != nullptr) note_projected(header, std::exchange(projection_, nullptr));
  return Object::adopt(header);
}

}  // namespace lookout::api::detail
