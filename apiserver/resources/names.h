// Aliases for this folder.
#pragma once

#include "apiserver/names.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/quantity.h"
#include "lookout/api/validation.h"
#include "lookout/api/value.h"

namespace lookout::apiserver::resources {

namespace rules = api::validation;
using api::Quantity;
using api::Value;
using api::detail::quote;

}  // namespace lookout::apiserver::resources
