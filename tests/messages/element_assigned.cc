#include <lookout/api/draft.h>

int main() {
  const lookout::api::ObjectDraft draft;
  const lookout::api::MapDraft<std::string_view> labels(draft["metadata"]["labels"]);
#if defined(MISTAKE)
  labels["app"] = "web";
#else
  labels.set("app", "web");
#endif
  return labels["app"] == "web" ? 0 : 1;
}
