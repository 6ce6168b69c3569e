// Aliases for the whole server.
#pragma once

#include "apiserver/json.h"
#include "lookout/api/object.h"
#include "lookout/api/status.h"

namespace lookout::apiserver {

using api::Object;
using api::StatusError;
using json::Allocator;
using json::Document;

}  // namespace lookout::apiserver
