// ControllerRevisions: the templates of a StatefulSet or a DaemonSet.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/controller/context.h"

namespace lookout::cmd::cluster {

/// The name of the ControllerRevision of a template with this hash.
std::string revision_name(const api::Object& owner, std::string_view hash);

/// Makes the ControllerRevision of `owner`'s current template the newest one, and deletes the oldest ones
/// beyond `limit`, except those in `used` (names). `kubectl rollout history` and `undo` read them: `data`
/// is the strategic merge patch that restores the template. The builder must own ControllerRevisions.
void keep_revisions(const api::Object& owner, std::string_view hash, std::string_view hash_label,
                    const std::set<std::string>& used, std::int32_t limit,
                    controller::Context& context);

}  // namespace lookout::cmd::cluster
