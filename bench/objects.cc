#include "bench/objects.h"

#include <fmt/format.h>

#include <map>

#include "bench/load/objects.h"

namespace lookout::bench {

std::string pod_json(std::size_t number, std::size_t bytes) {
  return object_json(*object_type("pods"), number, bytes);
}

std::string pod_list_json(std::size_t count) {
  std::string out =
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"100000"},"items":[)";
  for (std::size_t i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + pod_json(i);
  return out + "]}";
}

const std::vector<api::Object>& pods(std::size_t count) {
  static std::map<std::size_t, std::vector<api::Object>> kept;
  auto& out = kept[count];
  while (out.size() < count) out.push_back(api::Object::parse(pod_json(out.size())));
  return out;
}

std::vector<api::Object> bare_objects(std::size_t count, std::size_t matching) {
  std::vector<api::Object> out;
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(api::Object::parse(fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"obj-{}","namespace":"ns-{}"{}}}}})",
        i, i % 100, i < matching ? R"(,"labels":{"match":"true"})" : "")));
  }
  return out;
}

std::shared_ptr<cache::Indexer> store_of(std::vector<api::Object> objects, cache::Indexers more) {
  more.emplace(cache::kNamespaceIndex, cache::index_by_namespace);
  auto store = std::make_shared<cache::Indexer>(std::move(more));
  store->replace(std::move(objects), "1");
  return store;
}

}  // namespace lookout::bench
