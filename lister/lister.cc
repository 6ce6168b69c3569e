#include "lookout/lister/lister.h"

#include "lookout/api/status.h"

namespace lookout::lister::detail {

void throw_not_found(const api::Resource& resource, std::string_view name) {
  throw api::StatusError::not_found(resource.group, resource.plural, name);
}

}  // namespace lookout::lister::detail
