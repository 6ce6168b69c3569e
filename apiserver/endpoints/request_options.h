// The options of a request, for admission.
#pragma once

#include "apiserver/admission/webhook_admission.h"
#include "apiserver/endpoints/body.h"
#include "apiserver/resources/store.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// CreateOptions and UpdateOptions.
admission::RequestOptions admission_options(const http::Request& request,
                                            const WriteOptions& options);
/// DeleteOptions.
admission::RequestOptions admission_options(const resources::DeleteOptions& options);

}  // namespace lookout::apiserver::endpoints
