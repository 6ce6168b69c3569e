// The headers that most programs need, except the typed views: include those by group and version,
// such as <lookout/k8s/core/v1.h>.
#pragma once

#include "lookout/api/fields.h"                        // IWYU pragma: export
#include "lookout/api/labels.h"                        // IWYU pragma: export
#include "lookout/api/object.h"                        // IWYU pragma: export
#include "lookout/api/projection.h"                    // IWYU pragma: export
#include "lookout/api/status.h"                        // IWYU pragma: export
#include "lookout/api/typed_object.h"                  // IWYU pragma: export
#include "lookout/informer/shared_informer_factory.h"  // IWYU pragma: export
#include "lookout/lister/lister.h"                     // IWYU pragma: export
#include "lookout/rest/client.h"                       // IWYU pragma: export
