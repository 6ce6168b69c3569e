// FieldsV1: a parsed set is written as an equal set, and sets obey the laws of sets. (The input is
// two sets, one after the other.)
#include "apiserver/fields/fields_v1.h"
#include "tests/fuzz/two_documents.h"

using namespace lookout;
using apiserver::fields::FieldSet;
using fuzz::require;

namespace {

void check_form(const FieldSet& set) {
  rapidjson::Document document;
  const rapidjson::Value json = to_fields_v1(set, document.GetAllocator());
  const auto again = apiserver::fields::parse_fields_v1(json);
  require(again && *again == set);
  require(set.paths().size() == set.size());
}

void check_laws(const FieldSet& a, const FieldSet& b) {
  const FieldSet both = a.intersected(b);
  const FieldSet all = a.united(b);
  require(all == b.united(a));
  require(both == b.intersected(a));
  require(a.without(b).united(both) == a);
  require(a.without(b).intersected(b).empty());
  require(all.without(a) == b.without(a));
  require(all.size() + both.size() == a.size() + b.size());
  require(a.without_below(b).united(a.without(b)) == a.without(b));
  check_form(all);
  check_form(both);
  check_form(a.without(b));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::TwoDocuments documents;
  if (!documents.parse(fuzz::text_of(data, size))) return 0;
  const auto a = apiserver::fields::parse_fields_v1(documents.first);
  const auto b = apiserver::fields::parse_fields_v1(documents.second);
  if (!a || !b) return 0;
  check_form(*a);
  check_laws(*a, *b);
  return 0;
}
