#pragma once

#include <lookout/controller/webhook.h>

namespace website {

/// Adds the webhooks of Websites: one sets defaults, one rejects invalid objects and returns
/// warnings.
void add_website_webhooks(lookout::controller::WebhookServer& webhooks);

}  // namespace website
