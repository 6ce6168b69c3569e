// Merge patches: of any two documents (the halves of the input), the created patch leads from one
// to the other.
#include "lookout/api/error.h"
#include "lookout/api/merge_patch.h"
#include "tests/fuzz/two_documents.h"

using namespace lookout;
using fuzz::require;

namespace {

using Document = rapidjson::Document;

/// Duplicate members have no defined result.
bool has_duplicates(const rapidjson::Value& value) {
  if (value.IsArray()) {
    for (const auto& element : value.GetArray()) {
      if (has_duplicates(element)) return true;
    }
  } else if (value.IsObject()) {
    for (auto member = value.MemberBegin(); member != value.MemberEnd(); ++member) {
      if (value.FindMember(member->name) != member || has_duplicates(member->value)) return true;
    }
  }
  return false;
}

/// Removes nulls from objects: a merge patch cannot express them.
void remove_nulls(rapidjson::Value& value) {
  if (!value.IsObject()) return;
  for (auto member = value.MemberBegin(); member != value.MemberEnd();) {
    if (member->value.IsNull()) {
      member = value.EraseMember(member);
    } else {
      remove_nulls(member->value);
      ++member;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::TwoDocuments documents;
  if (!documents.parse(fuzz::text_of(data, size))) return 0;
  auto& [before, after] = documents;
  try {
    const Document patch = api::create_merge_patch(before, after);
    Document target;
    target.CopyFrom(before, target.GetAllocator());
    api::apply_merge_patch(target, after, target.GetAllocator());  // any document is a patch
    if (has_duplicates(before) || has_duplicates(after)) return 0;
    target.CopyFrom(before, target.GetAllocator());
    api::apply_merge_patch(target, patch, target.GetAllocator());
    remove_nulls(target);
    remove_nulls(after);
    require(target == after);
  } catch (const api::DecodeError&) {
    // nested too deeply
  }
  return 0;
}
