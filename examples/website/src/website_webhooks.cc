#include "website_webhooks.h"

#include <fmt/format.h>
#include <lookout/api/validation.h>
#include <lookout/controller/finalizers.h>

#include <string>
#include <string_view>
#include <vector>

#include "website_types.h"

namespace website {
namespace {

using namespace lookout;
using v1::Website;

/// True for an image with a tag ("nginx:1.27") or a digest ("registry:5000/nginx@sha256:..."). A
/// colon before the last slash belongs to a port.
bool names_a_version(std::string_view image) {
  return image.substr(image.rfind('/') + 1).find_first_of(":@") != std::string_view::npos;
}

/// Container runtimes treat "nginx" as "nginx:latest"; the stored object is explicit.
void set_defaults(const controller::Admission<Website>& request, const v1::WebsiteDraft& draft) {
  const auto image = request.object.spec().image();
  if (!image.empty() && !names_a_version(image))
    draft.spec().set_image(fmt::format("{}:latest", image));
}

controller::AdmissionResponse allowed_with_warnings(const Website& site) {
  auto response = controller::allowed();
  const auto spec = site.spec();
  if (spec.image().ends_with(":latest"))
    response.warn("spec.image: \"latest\" may be another image tomorrow; name a version");
  if (spec.replicas() == 0) response.warn("spec.replicas: with 0, nobody serves the website");
  return response;
}

/// The name becomes a Service's name, which a CRD's schema cannot validate.
controller::AdmissionResponse check_new(const controller::Admission<Website>& request) {
  const Website& site = request.object;
  std::vector<api::StatusCause> causes;
  for (const auto& message : api::validation::check_dns1035_label(site.name()))
    causes.push_back(api::validation::invalid("metadata.name", site.name(), message));
  if (!causes.empty())
    return controller::denied(
        api::StatusError::invalid("example.com", "Website", site.name(), causes));
  return allowed_with_warnings(site);
}

controller::AdmissionResponse check_change(const controller::Admission<Website>& request) {
  // The controller removes its finalizer by an update; rejecting it would keep the object forever.
  if (controller::is_being_deleted(request.object)) return controller::allowed();
  return allowed_with_warnings(request.object);
}

}  // namespace

void add_website_webhooks(controller::WebhookServer& webhooks) {
  webhooks.mutate<Website>(set_defaults);
  webhooks.validate<Website>(
      controller::Validator<Website>{.create = check_new, .update = check_change});
}

}  // namespace website
