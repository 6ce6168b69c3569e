#include "lookout/api/json_patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/json_values.h"
#include "lookout/api/detail/limits.h"
#include "lookout/api/object.h"

namespace lookout::api {
namespace {

using detail::text_of;
using rapidjson::SizeType;

/// The member of an object; null if there is none.
template <class V>
V* find_member(V& object, std::string_view name) {
  for (auto& member : object.GetObject()) {
    if (text_of(member.name) == name) return &member.value;
  }
  return nullptr;
}

/// The nesting depth of a value; 0 for scalars and empty containers.
std::size_t depth_of(const JsonValue& value) {
  std::size_t deepest = 0;
  if (value.IsArray()) {
    for (const auto& element : value.GetArray()) deepest = std::max(deepest, depth_of(element));
  } else if (value.IsObject()) {
    for (const auto& member : value.GetObject())
      deepest = std::max(deepest, depth_of(member.value));
  } else {
    return 0;
  }
  return deepest + 1;
}

/// About how many bytes of memory a copy takes.
std::size_t size_of(const JsonValue& value) {
  std::size_t size = sizeof(JsonValue);
  if (value.IsString()) size += value.GetStringLength();
  if (value.IsArray()) {
    for (const auto& element : value.GetArray()) size += size_of(element);
  } else if (value.IsObject()) {
    for (const auto& member : value.GetObject())
      size += sizeof(JsonValue) + member.name.GetStringLength() + size_of(member.value);
  }
  return size;
}

/// Nulls that a patch has written. To Go's json-patch, a null of the document is an absent value, but
/// a null of the patch is a value, and a copy of such a null equals no null. While a patch is
/// applied, the latter two are numbers that JSON does not have.
enum class PatchNull : std::uint64_t {
  kGiven = 0x7FF8'0000'0000'0001,
  kCopied = 0x7FF8'0000'0000'0002,
};

JsonValue marked(PatchNull null) {
  return JsonValue(std::bit_cast<double>(static_cast<std::uint64_t>(null)));
}

bool is_marked(const JsonValue& value) { return value.IsDouble() && std::isnan(value.GetDouble()); }

bool is_marked(const JsonValue& value, PatchNull null) {
  return value.IsDouble() &&
         std::bit_cast<std::uint64_t>(value.GetDouble()) == static_cast<std::uint64_t>(null);
}

bool has_marks(const JsonValue& value) {
  if (value.IsArray()) return std::any_of(value.Begin(), value.End(), has_marks);
  if (!value.IsObject()) return is_marked(value);
  return std::any_of(value.MemberBegin(), value.MemberEnd(),
                     [](const auto& member) { return has_marks(member.value); });
}

/// Turns all marks into null.
void remove_marks(JsonValue& value) {
  if (value.IsArray()) {
    for (auto& element : value.GetArray()) remove_marks(element);
  } else if (value.IsObject()) {
    for (auto& member : value.GetObject()) remove_marks(member.value);
  } else if (is_marked(value)) {
    value.SetNull();
  }
}

/// Compares JSON, ignoring the order of members. Takes linear time, unlike RapidJSON's comparison.
bool equal_as_objects(const JsonValue& a, const JsonValue& b) {
  const auto flat = [](const JsonValue& value) {
    rapidjson::Document holder(rapidjson::kObjectType);
    holder.AddMember("value", detail::deep_copy(value, holder.GetAllocator()),
                     holder.GetAllocator());
    return Object::from(holder);
  };
  return flat(a) == flat(b);
}

/// A JSON pointer (RFC 6901), in parts.
std::vector<std::string> parse_pointer(std::string_view pointer) {
  std::vector<std::string> tokens;
  if (pointer.empty()) return tokens;
  if (pointer.front() != '/')
    throw PatchError(fmt::format("the path {} does not begin with '/'", detail::quote(pointer)));
  std::string token;
  for (std::size_t i = 1; i <= pointer.size(); ++i) {
    if (i == pointer.size() || pointer[i] == '/') {
      tokens.push_back(std::move(token));
      token.clear();
    } else if (pointer[i] == '~' && i + 1 < pointer.size() &&
               (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
      token += pointer[++i] == '0' ? '~' : '/';
    } else {
      token += pointer[i];
    }
  }
  return tokens;
}

/// The index of a token in an array of `size` elements; `last` is the highest allowed one.
std::optional<SizeType> array_index(const std::string& token, SizeType size, SizeType last) {
  const auto number = detail::parse_int(token);
  if (!number) return std::nullopt;
  const std::int64_t index = *number < 0 ? *number + size : *number;
  if (index < 0 || index > static_cast<std::int64_t>(last)) return std::nullopt;
  return static_cast<SizeType>(index);
}

const JsonValue& required(const JsonValue& operation, const char* name) {
  const JsonValue* value = find_member(operation, name);
  if (value == nullptr) throw DecodeError(fmt::format("an operation lacks its \"{}\"", name));
  return *value;
}

std::string_view required_text(const JsonValue& operation, const char* name) {
  const JsonValue& value = required(operation, name);
  if (!value.IsString())
    throw DecodeError(fmt::format("the \"{}\" of an operation is not a string", name));
  return text_of(value);
}

void check_form(const JsonValue& operation) {
  if (!operation.IsObject()) throw DecodeError("an operation of a JSON patch is an object");
  const std::string_view op = required_text(operation, "op");
  const auto is = [&](auto... names) { return ((op == names) || ...); };
  if (!is("add", "remove", "replace", "move", "copy", "test"))
    throw DecodeError(fmt::format("unexpected kind of operation: {}", detail::quote(op)));
  required_text(operation, "path");
  if (is("add", "replace")) required(operation, "value");
  if (is("move", "copy")) required_text(operation, "from");
}

class Patcher {
 public:
  Patcher(JsonValue& target, Allocator& allocator) : target_(target), allocator_(allocator) {}

  void apply(const JsonValue& operation) {
    const std::string_view op = required_text(operation, "op");
    const std::string_view path = required_text(operation, "path");
    if (op == "add") {
      add(path, given(required(operation, "value")));
    } else if (op == "remove") {
      remove(path);
    } else if (op == "replace") {
      const JsonValue& value = required(operation, "value");
      replace(path, value);
    } else if (op == "move") {
      const std::string_view from = required_text(operation, "from");
      JsonValue moved;
      if (JsonValue* at = find_part(from)) {
        moved = std::move(*at);
      } else {
        fail("move", from);
      }
      remove(from);
      add(path, std::move(moved));
    } else if (op == "copy") {
      const std::string_view from = required_text(operation, "from");
      const JsonValue* at = find_part(from);
      if (at == nullptr && !is_member(from)) fail("copy", from);
      const JsonValue absent;
      const JsonValue& copied = at == nullptr ? absent : *at;
      copied_ += size_of(copied);
      if (copied_ > kMaxPatchCopyBytes) throw PatchError("the patch copies too much");
      add(path, duplicate(copied));
    } else {  // "test"
      const JsonValue* at = find(path);
      if (at == nullptr && !is_member(path)) fail("test", path);
      if (!is_as_expected(at, find_member(operation, "value")))
        throw PatchError(fmt::format("testing value {} failed", path));
    }
  }

  void finish() {
    if (has_marked_) remove_marks(target_);
  }

 private:
  /// Both may be null pointers: there is no value.
  static bool is_as_expected(const JsonValue* value, const JsonValue* expected) {
    const bool expects_null = expected == nullptr || expected->IsNull();
    if (value == nullptr || value->IsNull()) return expects_null;
    if (is_marked(*value))
      return expected != nullptr && expects_null && is_marked(*value, PatchNull::kGiven);
    return !expects_null && !has_marks(*value) && equal_as_objects(*value, *expected);
  }

  [[noreturn]] static void fail(std::string_view op, std::string_view path) {
    throw PatchError(
        fmt::format("{} operation does not apply: there is no {}", op, detail::quote(path)));
  }

  JsonValue copy(const JsonValue& value) { return detail::deep_copy(value, allocator_); }

  /// The value of an operation.
  JsonValue given(const JsonValue& value) {
    if (!value.IsNull()) return copy(value);
    has_marked_ = true;
    return marked(PatchNull::kGiven);
  }

  /// The copy of a value in the target.
  JsonValue duplicate(const JsonValue& value) {
    if (is_marked(value)) return marked(PatchNull::kCopied);
    JsonValue out = copy(value);
    if (has_marked_) remove_marks(out);
    return out;
  }

  /// The value at a path; null if there is none.
  JsonValue* find(std::string_view path) {
    const auto tokens = parse_pointer(path);
    return walk(tokens, tokens.size());
  }

  /// The same, but null for the whole target.
  JsonValue* find_part(std::string_view path) { return path.empty() ? nullptr : find(path); }

  JsonValue* walk(const std::vector<std::string>& tokens, std::size_t count) {
    JsonValue* at = &target_;
    for (std::size_t i = 0; i < count && at != nullptr; ++i) {
      if (at->IsObject()) {
        at = find_member(*at, tokens[i]);
      } else if (at->IsArray() && !at->Empty()) {
        const auto index = array_index(tokens[i], at->Size(), at->Size() - 1);
        at = index ? &(*at)[*index] : nullptr;
      } else {
        at = nullptr;
      }
    }
    return at;
  }

  void add(std::string_view path, JsonValue value) {
    check_depth(path, value);
    const auto tokens = parse_pointer(path);
    if (tokens.empty()) fail("add", path);
    JsonValue* parent = walk(tokens, tokens.size() - 1);
    const std::string& last = tokens.back();
    if (parent != nullptr && parent->IsObject()) {
      if (JsonValue* present = find_member(*parent, last)) {
        *present = std::move(value);
      } else {
        JsonValue name(last.data(), static_cast<SizeType>(last.size()), allocator_);
        parent->AddMember(name, value, allocator_);
      }
    } else if (parent != nullptr && parent->IsArray()) {
      const SizeType size = parent->Size();
      // Negative indices count from the end; -1 is after the last element.
      const auto index = last == "-" ? std::optional(size) : insertion_index(last, size);
      if (!index) fail("add", path);
      parent->PushBack(value, allocator_);
      std::rotate(parent->Begin() + *index, parent->End() - 1, parent->End());
    } else {
      fail("add", path);
    }
  }

  /// Whether a path names a (possibly absent) member of an existing object.
  bool is_member(std::string_view path) {
    const auto tokens = parse_pointer(path);
    const JsonValue* parent = tokens.empty() ? nullptr : walk(tokens, tokens.size() - 1);
    return parent != nullptr && parent->IsObject();
  }

  void replace(std::string_view path, const JsonValue& value) {
    if (is_member(path)) {
      add(path, given(value));
      return;
    }
    JsonValue* at = find(path);
    const bool whole = path.empty();
    if (at == nullptr || (whole && !value.IsObject() && !value.IsArray())) fail("replace", path);
    *at = given(value);
    check_depth(path, *at);
  }

  static std::optional<SizeType> insertion_index(const std::string& token, SizeType size) {
    return token.starts_with('-') ? array_index(token, size + 1, size)
                                  : array_index(token, size, size);
  }

  void remove(std::string_view path) {
    const auto tokens = parse_pointer(path);
    JsonValue* parent = tokens.empty() ? nullptr : walk(tokens, tokens.size() - 1);
    if (parent != nullptr && parent->IsObject()) {
      const auto member =
          std::find_if(parent->MemberBegin(), parent->MemberEnd(),
                       [&](const auto& m) { return text_of(m.name) == tokens.back(); });
      if (member == parent->MemberEnd()) fail("remove", path);
      parent->EraseMember(member);
    } else if (parent != nullptr && parent->IsArray() && !parent->Empty()) {
      const auto index = array_index(tokens.back(), parent->Size(), parent->Size() - 1);
      if (!index) fail("remove", path);
      parent->Erase(parent->Begin() + *index);
    } else {
      fail("remove", path);
    }
  }

  /// Limits the depth, so that readers of the result may recurse.
  static void check_depth(std::string_view path, const JsonValue& value) {
    const auto above = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
    if (above + depth_of(value) > kMaxDepth) throw PatchError("the patch nests too deeply");
  }

  JsonValue& target_;
  Allocator& allocator_;
  std::size_t copied_ = 0;
  bool has_marked_ = false;
};

}  // namespace

void apply_json_patch(rapidjson::Value& target, const rapidjson::Value& patch,
                      rapidjson::Document::AllocatorType& allocator) {
  if (!patch.IsArray()) throw DecodeError("a JSON patch is a list of operations");
  for (const auto& operation : patch.GetArray()) check_form(operation);
  if (depth_of(patch) > kMaxDepth) throw DecodeError("the JSON patch is nested too deeply");
  Patcher patcher(target, allocator);
  for (const auto& operation : patch.GetArray()) patcher.apply(operation);
  patcher.finish();
}

}  // namespace lookout::api
