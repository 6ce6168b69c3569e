#include "lookout/api/object.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/detail/hash_seed.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/limits.h"
#include "lookout/api/detail/object_header.h"
#include "lookout/api/detail/projected_objects.h"
#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "lookout/api/symbols.h"
#include "lookout/base/structural_scanner.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::api {
namespace {

/// The value at an offset of the header.
Value at_offset(const detail::ObjectHeader* header, std::uint16_t detail::ObjectHeader::*offset,
                Symbol field) {
  if (header == nullptr) return {};
  if (header->*offset == 0) {
    if constexpr (detail::kProjectionsAreChecked) {
      const Value metadata = Value(header->body())[sym::kMetadata];
      if (field != sym::kMetadata) return metadata[field];  // which says why it is absent
    }
    return {};
  }
  if (header->*offset == detail::ObjectHeader::kFar) {
    const Value metadata = Value(header->body())[sym::kMetadata];
    return field == sym::kMetadata ? metadata : metadata[field];
  }
  return Value(header->body() + header->*offset);
}

/// The text at an offset of the header; usually a short string.
std::string_view text_at(const detail::ObjectHeader* header,
                         std::uint16_t detail::ObjectHeader::*offset, Symbol field) {
  if (header != nullptr && header->*offset != 0 && header->*offset != detail::ObjectHeader::kFar) {
    const std::uint8_t* const value = header->body() + header->*offset;
    if (*value >= detail::kTagShortString && *value < detail::kTagSymbol)
      return {reinterpret_cast<const char*>(value + 1), *value & detail::kMaxShortString};
  }
  return at_offset(header, offset, field).as_string();
}

std::string_view checked_text(const rapidjson::Value& value) {
  const std::string_view text(value.GetString(), value.GetStringLength());
  if (find_invalid_utf8(text) != std::string_view::npos)
    throw DecodeError("the document has a string that is not UTF-8");
  return text;
}

void write_document(const rapidjson::Value& value, detail::FlatWriter& writer) {
  if ((value.IsObject() || value.IsArray()) && writer.depth() >= kMaxDepth)
    throw DecodeError("the document is nested too deeply");
  switch (value.GetType()) {
    case rapidjson::kNullType:
      writer.null();
      return;
    case rapidjson::kFalseType:
    case rapidjson::kTrueType:
      writer.boolean(value.GetBool());
      return;
    case rapidjson::kStringType:
      writer.string(checked_text(value));
      return;
    case rapidjson::kNumberType:
      if (value.IsInt64()) {
        writer.integer(value.GetInt64());
      } else if (value.IsUint64()) {
        writer.uinteger(value.GetUint64());
      } else if (std::isfinite(value.GetDouble())) {
        writer.real(value.GetDouble());
      } else {
        throw DecodeError("the document has a number that JSON cannot express");
      }
      return;
    case rapidjson::kObjectType:
      writer.begin_object();
      for (const auto& [name, member] : value.GetObject()) {
        writer.key(checked_text(name));
        write_document(member, writer);
      }
      writer.end_object();
      return;
    case rapidjson::kArrayType:
      writer.begin_array();
      for (const auto& element : value.GetArray()) write_document(element, writer);
      writer.end_array();
      return;
  }
}

/// Sends a parser's events to the document, so that containers are allocated with the exact size.
/// (AddMember() reserves 16 members per object.)
void send_events(Value value, rapidjson::Document& document, std::size_t depth = 0) {
  // Recursive, like most functions for documents.
  if (depth > kMaxDepth) throw DecodeError("the object is nested too deeply for a document");
  constexpr bool kCopy = true;
  const auto size_of = [](std::string_view text) {
    return static_cast<rapidjson::SizeType>(text.size());
  };
  rapidjson::SizeType count = 0;
  switch (value.kind()) {
    case Value::Kind::kAbsent:
    case Value::Kind::kNull:
      document.Null();
      return;
    case Value::Kind::kBool:
      document.Bool(value.as_bool());
      return;
    case Value::Kind::kNumber:
      if (*value.data() == detail::kTagDouble) {
        document.Double(value.as_double());
      } else if (const auto whole = value.to_int()) {
        document.Int64(*whole);
      } else if (const auto large = value.to_uint()) {
        document.Uint64(*large);
      } else {
        // RapidJSON cannot write infinity.
        document.Double(std::clamp(value.as_double(), std::numeric_limits<double>::lowest(),
                                   std::numeric_limits<double>::max()));
      }
      return;
    case Value::Kind::kString: {
      const std::string_view text = value.as_string();
      document.String(text.data(), size_of(text), kCopy);
      return;
    }
    case Value::Kind::kObject:
      document.StartObject();
      for (const auto& [name, member] : value.members()) {
        document.Key(name.data(), size_of(name), kCopy);
        send_events(member, document, depth + 1);
        ++count;
      }
      document.EndObject(count);
      return;
    case Value::Kind::kArray:
      document.StartArray();
      for (const Value element : value.elements()) {
        send_events(element, document, depth + 1);
        ++count;
      }
      document.EndArray(count);
      return;
  }
}

/// 0: a random seed is drawn.
constinit std::atomic<std::uint64_t> fixed_seed{0};

/// Different in every process, so that attackers cannot choose colliding names.
std::uint64_t hash_seed() {
  static const std::uint64_t kSeed = [] {
    if (const std::uint64_t fixed = fixed_seed.load(); fixed != 0) return fixed;
    const auto now = static_cast<std::uint64_t>(
        std::chrono::high_resolution_clock::now().time_since_epoch().count());
    const int local = 0;
    return now * 0x9E3779B97F4A7C15u ^ reinterpret_cast<std::uintptr_t>(&local);
  }();
  return kSeed;
}

__extension__ using Product = unsigned __int128;

/// XOR of the product's halves: each bit depends on all bits of both factors.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Product product = static_cast<Product>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <class Word>
std::uint64_t load(const char* p) {
  Word word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

/// Texts of up to 16 bytes (namespaces, many names) take one multiplication; those of a key's parts
/// are independent.
std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  constexpr std::uint64_t kLength = 0xA0761D6478BD642Fu;
  constexpr std::uint64_t kBlock = 0xE7037ED1A0B428DBu;
  const char* p = text.data();
  std::size_t left = text.size();
  for (; left > 16; p += 16, left -= 16)
    seed = fold(load<std::uint64_t>(p) ^ (seed * kBlock), load<std::uint64_t>(p + 8) ^ seed);
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  if (left >= 8) {
    a = load<std::uint64_t>(p);
    b = load<std::uint64_t>(p + left - 8);
  } else if (left >= 4) {
    a = load<std::uint32_t>(p);
    b = load<std::uint32_t>(p + left - 4);
  } else if (left > 0) {
    a = load<std::uint8_t>(p) << 16 | load<std::uint8_t>(p + left / 2) << 8 |
        load<std::uint8_t>(p + left - 1);
  }
  return fold(a ^ (seed * kLength) ^ text.size(), b ^ seed);
}

}  // namespace

void detail::fix_hash_seed(std::uint64_t seed) { fixed_seed = seed; }

std::uint32_t key_hash(std::string_view ns, std::string_view name) {
  constexpr std::uint64_t kName = 0x8EBC6AF09C88C6E3u;
  const std::uint64_t seed = hash_seed();
  return static_cast<std::uint32_t>(fold(hash_of(ns, seed) ^ kName, hash_of(name, ~seed)));
}

void Object::retain() const {
  if (header_ != nullptr) header_->references.fetch_add(1, std::memory_order_relaxed);
}

void Object::release() const {
  if (header_ != nullptr && header_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    if constexpr (detail::kProjectionsAreChecked) detail::forget_projected(header_);
    std::free(const_cast<detail::ObjectHeader*>(header_));
  }
}

Object Object::parse(std::string_view json) {
  JsonDecoder decoder;
  std::string copy(json);
  Object object = decoder.decode(copy);
  if (!object) throw DecodeError(decoder.error());
  return object;
}

Object Object::from(const rapidjson::Value& document) {
  if (!document.IsObject()) throw DecodeError("expected a JSON object");
  detail::FlatWriter& writer = detail::FlatWriter::of_this_thread();
  write_document(document, writer);
  return writer.finish();
}

rapidjson::Document Object::to_document() const {
  rapidjson::Document document(rapidjson::kObjectType);
  if (header_ == nullptr) return document;
  const auto fill = [this](rapidjson::Document& handler) {
    send_events(body(), handler);
    return true;
  };
  document.Populate(fill);
  return document;
}

std::string Object::to_json() const { return body().to_json(); }

std::string Object::to_pretty_json(unsigned indent) const {
  std::string out;
  detail::write_pretty_json(body(), indent, out);
  return out;
}

std::string_view Object::ns() const& {
  return text_at(header_, &detail::ObjectHeader::ns, sym::kNamespace);
}
std::string_view Object::name() const& {
  return text_at(header_, &detail::ObjectHeader::name, sym::kName);
}
std::string_view Object::uid() const& {
  return text_at(header_, &detail::ObjectHeader::uid, sym::kUid);
}

std::string_view Object::resource_version() const& {
  return text_at(header_, &detail::ObjectHeader::resource_version, sym::kResourceVersion);
}

std::string Object::key() const {
  const std::string_view space = ns();
  std::string out;
  out.reserve(space.size() + 1 + name().size());
  if (!space.empty()) out.append(space).append(1, '/');
  return out.append(name());
}

std::string_view Object::api_version() const& { return body()[sym::kApiVersion].as_string(); }
std::string_view Object::kind() const& { return body()[sym::kKind].as_string(); }
GroupVersionKind Object::gvk() const { return GroupVersionKind::from(api_version(), kind()); }
Value Object::labels() const& {
  return at_offset(header_, &detail::ObjectHeader::labels, sym::kLabels);
}
Value Object::annotations() const& {
  return at_offset(header_, &detail::ObjectHeader::metadata, sym::kMetadata)[sym::kAnnotations];
}

k8s::meta::v1::ObjectMeta Object::metadata() const& {
  return k8s::meta::v1::ObjectMeta(
      at_offset(header_, &detail::ObjectHeader::metadata, sym::kMetadata), header_);
}

Value Object::operator[](Symbol key) const& {
  if (header_ != nullptr) {
    const std::uint16_t offset = key == sym::kSpec     ? header_->spec
                                 : key == sym::kStatus ? header_->status
                                                       : std::uint16_t{0};
    if (offset != 0 && offset != detail::ObjectHeader::kFar) return Value(header_->body() + offset);
  }
  return body()[key];
}

Value Object::body() const& { return header_ == nullptr ? Value{} : Value(header_->body()); }
std::size_t Object::memory_size() const {
  return header_ == nullptr ? 0 : sizeof(detail::ObjectHeader) + header_->size;
}
std::uint32_t Object::key_hash() const { return header_ == nullptr ? 0 : header_->key_hash; }

bool Object::equal(const Object& a, const Object& b) {
  if (a.header_ == b.header_) return true;
  if (a.header_ == nullptr || b.header_ == nullptr) return false;
  return a.header_->size == b.header_->size &&
         std::memcmp(a.header_->body(), b.header_->body(), a.header_->size) == 0;
}

}  // namespace lookout::api
