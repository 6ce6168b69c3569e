#include "apiserver/fields/managed_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "apiserver/fields/fields_v1.h"
#include "apiserver/fields/typed_value.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::fields {
namespace {

using json::Value;

constexpr std::string_view kAncientChanges = "ancient-changes";
constexpr std::string_view kManagedFields = "managedFields";

/// An entry without its fields.
std::optional<Entry> parse_head(const Value& value) {
  if (!value.IsObject()) return std::nullopt;
  Entry entry;
  const std::string_view operation = json::text(value, "operation");
  if (operation == "Apply") {
    entry.owner.operation = Operation::kApply;
  } else if (operation != "Update") {
    return std::nullopt;
  }
  entry.owner.manager = json::text(value, "manager");
  entry.owner.subresource = json::text(value, "subresource");
  entry.owner.api_version = json::text(value, "apiVersion");
  if (entry.owner.api_version.empty() || json::text(value, "fieldsType") != "FieldsV1")
    return std::nullopt;
  if (const Value* time = json::find(value, "time"); time != nullptr && time->IsString()) {
    const auto parsed = api::parse_time(json::text_of(*time));
    if (!parsed) return std::nullopt;
    entry.time = std::chrono::floor<std::chrono::seconds>(*parsed);
  }
  return entry;
}

std::optional<Entry> parse_entry(const Value& value) {
  auto entry = parse_head(value);
  if (!entry) return std::nullopt;
  const Value* fields = json::find(value, "fieldsV1");
  if (fields != nullptr && !fields->IsNull()) {
    auto set = parse_fields_v1(*fields);
    if (!set) return std::nullopt;
    entry->set = std::move(*set);
  }
  return entry;
}

std::string_view name_of(Operation operation) {
  return operation == Operation::kApply ? "Apply" : "Update";
}

Value to_value(const Entry& entry, Value fields, json::Allocator& allocator) {
  Value out(rapidjson::kObjectType);
  const auto add = [&](const char* name, std::string_view text) {
    if (!text.empty())
      out.AddMember(rapidjson::StringRef(name), json::copy_text(text, allocator), allocator);
  };
  add("manager", entry.owner.manager);
  add("operation", name_of(entry.owner.operation));
  add("apiVersion", entry.owner.api_version);
  if (entry.time) add("time", api::format_time(*entry.time));
  add("fieldsType", "FieldsV1");
  out.AddMember("fieldsV1", fields, allocator);
  add("subresource", entry.owner.subresource);
  return out;
}

/// The order of entries: by operation and age. An entry without a time is the oldest.
bool comes_before(const Entry& a, const Entry& b) {
  const auto key = [](const Entry& entry) {
    const Owner& owner = entry.owner;
    return std::tuple(owner.operation, entry.time.value_or(api::Time()),
                      std::string_view(owner.manager), std::string_view(owner.api_version),
                      std::string_view(owner.subresource));
  };
  return key(a) < key(b);
}

}  // namespace

std::string Owner::to_string() const {
  std::string out = api::detail::quote(manager);
  if (!subresource.empty())
    out += fmt::format(" with subresource {}", api::detail::quote(subresource));
  if (operation == Operation::kUpdate) out += fmt::format(" using {}", api_version);
  return out;
}

std::optional<ManagedFields> ManagedFields::parse(const Value& entries) {
  ManagedFields out;
  if (entries.IsNull()) return out;
  if (!entries.IsArray()) return std::nullopt;
  std::map<std::tuple<bool, std::string, std::string, std::string>, std::size_t> places;
  for (const Value& value : entries.GetArray()) {
    auto entry = parse_entry(value);
    if (!entry) return std::nullopt;
    const Owner& owner = entry->owner;
    const bool applies = owner.operation == Operation::kApply;
    const auto [place, added] =
        places.emplace(std::tuple(applies, owner.manager, owner.subresource,
                                  applies ? std::string() : owner.api_version),
                       out.entries_.size());
    // The last one of several entries for one owner counts.
    if (added) {
      out.entries_.push_back(std::move(*entry));
    } else {
      out.entries_[place->second] = std::move(*entry);
    }
  }
  return out;
}

Entry* ManagedFields::find(const Owner& owner) {
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& entry) { return entry.owner.is_same_as(owner); });
  return at == entries_.end() ? nullptr : &*at;
}

void ManagedFields::remove(const Owner& owner) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.owner.is_same_as(owner); });
}

void ManagedFields::drop_empty() {
  std::erase_if(entries_, [](const Entry& entry) { return entry.set.empty(); });
}

void ManagedFields::cap_updaters(std::size_t limit) {
  const auto is_updater = [](const Entry& e) { return e.owner.operation == Operation::kUpdate; };
  const auto count =
      static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), is_updater));
  if (count <= limit) return;
  const auto begin = std::stable_partition(entries_.begin(), entries_.end(),
                                           [&](const Entry& e) { return !is_updater(e); });
  std::vector<Entry> updaters;
  std::move(begin, entries_.end(), std::back_inserter(updaters));
  entries_.erase(begin, entries_.end());
  std::sort(updaters.begin(), updaters.end(), comes_before);
  std::vector<bool> gone(updaters.size());
  std::map<std::string, std::size_t> buckets;
  for (std::size_t i = 0; i < updaters.size(); ++i) {
    const Owner& owner = updaters[i].owner;
    if (owner.manager == kAncientChanges && owner.subresource.empty())
      buckets.emplace(owner.api_version, i);
  }
  // The oldest entry of a version is unchanged until there is a second one.
  std::map<std::string, std::size_t> firsts;
  std::size_t left = count;
  for (std::size_t i = 0; i < updaters.size() && left > limit; ++i) {
    const std::string& version = updaters[i].owner.api_version;
    const auto [first, is_first] = firsts.emplace(version, i);
    if (is_first) continue;
    const auto [bucket, is_new] = buckets.emplace(version, first->second);
    if (bucket->second == i) continue;
    Entry& entry = updaters[bucket->second];
    if (is_new) {
      entry.owner.manager = kAncientChanges;
      entry.owner.subresource.clear();
    }
    entry.set = entry.set.united(updaters[i].set);
    entry.time = updaters[i].time;
    gone[i] = true;
    --left;
  }
  for (std::size_t i = 0; i < updaters.size(); ++i) {
    if (!gone[i]) entries_.push_back(std::move(updaters[i]));
  }
}

Value ManagedFields::to_json(json::Allocator& allocator) {
  std::sort(entries_.begin(), entries_.end(), comes_before);
  Value out(rapidjson::kArrayType);
  out.Reserve(static_cast<rapidjson::SizeType>(entries_.size()), allocator);
  for (const Entry& entry : entries_) {
    out.PushBack(to_value(entry, to_fields_v1(entry.set, allocator), allocator), allocator);
  }
  return out;
}

bool renew_time(Value& entries, const Update& update, std::size_t limit,
                json::Allocator& allocator) {
  if (!entries.IsArray() || entries.Empty() || entries.Size() > limit) return false;
  struct Kept {
    Entry head;
    Value* fields;
  };
  std::vector<Kept> all;
  bool found = update.gained.empty();
  for (Value& value : entries.GetArray()) {
    auto head = parse_head(value);
    if (!head || head->owner.api_version != update.self.api_version) return false;
    const auto is_same = [&](const Kept& other) {
      return other.head.owner.is_same_as(head->owner);
    };
    if (std::any_of(all.begin(), all.end(), is_same)) return false;
    Value* fields = json::find(value, "fieldsV1");
    if (fields == nullptr || !is_written_fields_v1(*fields) || fields->ObjectEmpty()) return false;
    if (head->owner.is_same_as(update.self)) {
      if (!has_all(*fields, update.gained) || !has_none(*fields, update.lost)) return false;
      if (!update.gained.empty()) head->time = update.time;
      found = true;
    } else if (!has_none(*fields, update.touched)) {
      return false;
    }
    all.push_back({std::move(*head), fields});
  }
  if (!found) return false;
  std::sort(all.begin(), all.end(),
            [](const Kept& a, const Kept& b) { return comes_before(a.head, b.head); });
  Value out(rapidjson::kArrayType);
  out.Reserve(entries.Size(), allocator);
  for (Kept& entry : all)
    out.PushBack(to_value(entry.head, std::move(*entry.fields), allocator), allocator);
  entries = std::move(out);
  return true;
}

bool is_reset(const Value& entries) {
  if (!entries.IsArray()) return false;
  if (entries.Empty()) return true;
  if (entries.Size() != 1 || !entries[0].IsObject()) return false;
  return std::all_of(entries[0].MemberBegin(), entries[0].MemberEnd(), [](const auto& member) {
    return member.value.IsNull() ||
           (member.value.IsString() && member.value.GetStringLength() == 0);
  });
}

Value* managed_fields_of(Value& object) {
  Value* metadata = json::find(object, "metadata");
  return metadata == nullptr ? nullptr : json::find(*metadata, kManagedFields);
}
const Value* managed_fields_of(const Value& object) {
  return managed_fields_of(const_cast<Value&>(object));
}

void set_managed_fields(Value& object, Value managed, json::Allocator& allocator) {
  Value& metadata = json::child(object, "metadata", allocator);
  if (managed.IsNull() || (managed.IsArray() && managed.Empty())) {
    json::erase(metadata, kManagedFields);
  } else {
    json::set(metadata, kManagedFields, std::move(managed), allocator);
  }
}

bool equal_but_for_times(const Value* a, const Value* b) {
  if (a == nullptr || b == nullptr) return a == b;
  if (!a->IsArray() || !b->IsArray() || a->Size() != b->Size()) return false;
  json::Document left;
  json::Document right;
  left.CopyFrom(*a, left.GetAllocator());
  right.CopyFrom(*b, right.GetAllocator());
  // Entries are ordered by their times.
  const auto sorted = [](Value& entries) {
    std::vector<std::string> out;
    for (Value& entry : entries.GetArray()) {
      json::erase(entry, "time");
      out.push_back(json::to_json(entry));
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  return sorted(left) == sorted(right);
}

}  // namespace lookout::apiserver::fields
