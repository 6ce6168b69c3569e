#include "cmd/object_name.h"

#include <fmt/format.h>

#include "lookout/base/ascii.h"

namespace lookout::cmd {

std::string name_of(const api::Resource& resource, std::string_view name) {
  return fmt::format("{}{}{}/{}", base::lower_case(resource.kind),
                     resource.group.empty() ? "" : ".", resource.group, name);
}

}  // namespace lookout::cmd
