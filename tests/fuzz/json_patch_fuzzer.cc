// JSON patches: the second line of the input is applied to the first.
#include "lookout/api/json_patch.h"
#include "tests/fuzz/two_documents.h"

using namespace lookout;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::TwoDocuments documents;
  if (!documents.parse(fuzz::text_of(data, size))) return 0;
  try {
    api::apply_json_patch(documents.first, documents.second, documents.first.GetAllocator());
  } catch (const Error& e) {
    fuzz::require(*e.what() != '\0');
  }
  return 0;
}
