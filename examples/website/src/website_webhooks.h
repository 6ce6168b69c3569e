#pragma once

#include <lookout/controller/webhook.h>

namespace website {

/// Adds the webhooks of Websites: one fills in what users leave out, one refuses what cannot work
/// and warns of what may surprise.
void add_website_webhooks(lookout::controller::WebhookServer& webhooks);

}  // namespace website
