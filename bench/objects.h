// The objects of the micro benchmarks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout::bench {

/// The JSON of a running pod of about this size, with status and managedFields (load/objects.h).
std::string pod_json(std::size_t number, std::size_t bytes = 6200);

/// A PodList of these.
std::string pod_list_json(std::size_t count);

/// Decoded pods of 6 KB, spread over 100 namespaces. Cached for each count.
const std::vector<api::Object>& pods(std::size_t count);

/// Objects with little more than a name, as in client-go's benchmarks of stores and listers. The
/// first `matching` have the label match=true.
std::vector<api::Object> bare_objects(std::size_t count, std::size_t matching = 0);

/// A store with an informer's indexes and these objects.
std::shared_ptr<cache::Indexer> store_of(std::vector<api::Object> objects,
                                         cache::Indexers more = {});

}  // namespace lookout::bench
