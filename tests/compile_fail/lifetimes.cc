// Valid and invalid references into objects. scripts/check-lifetimes.sh compiles this file: lines
// marked "refused" must be errors of every compiler, lines marked "warned" must be warnings of
// Clang, and the other lines must compile without either.
#include <acme/workshops.h>
#include <lookout/k8s/apps/v1_draft.h>
#include <lookout/k8s/core/v1.h>
#include <lookout/k8s/core/v1_draft.h>
#include <lookout/lister/lister.h>
#include <lookout/rest/client.h>
#include <lookout/rest/discovery.h>

#include <string>
#include <string_view>

using lookout::api::DraftPart;
using lookout::api::Object;
using lookout::api::Value;
using lookout::k8s::core::v1::Pod;
using lookout::k8s::core::v1::PodSpec;
using lookout::k8s::core::v1::Secret;

using Lister = lookout::lister::Lister<Pod>;
using Pods = lookout::rest::TypedClient<Pod>;
using Snapshot = lookout::cache::Snapshot;

void use(std::string_view);
void use(const Pod&);

// --- Objects that a function returns
void loops(const Lister& lister, const Pods& pods) {
  for (auto c : lister.get("x").spec().containers()) use(c.name());          // refused
  for (auto c : pods.get("x").spec().containers()) use(c.name());            // refused
  for (auto [k, v] : lister.get("x").labels().members()) use(k);             // refused
  for (auto v : Object::parse("{}")["list"].elements()) use(v.as_string());  // refused
  for (auto [k, v] : lister.get("x").metadata().annotations()) use(v);       // refused
  const Pod pod = lister.get("x");
  for (auto c : pod.spec().containers()) use(c.name());
  for (auto [k, v] : pod.labels().members()) use(k);
  for (const Pod& each : lister.list()) use(each.spec().node_name());
  for (const auto& each : pods.list().items) use(each.spec().node_name());
}

void views(const Lister& lister, const Pods& pods) {
  const PodSpec spec = lister.find("x").spec();           // refused
  const Value whole = pods.get("x").body();               // refused
  const Value member = pods.get("x")["spec"];             // refused
  const Value at = pods.get("x").at(".spec");             // refused
  const Value labels = Object(lister.get("x")).labels();  // refused
  const auto data = Secret(Object()).data();              // refused
  const auto first = lister.list().begin();               // refused
  const Pod pod = pods.get("x");
  const PodSpec right = pod.spec();
  const auto containers = pod.spec().containers();
  use(right.node_name());
  use(containers[0].name());
}

// --- Text
void texts(const Lister& lister, const Pods& pods, const Snapshot& snapshot) {
  const std::string_view name = lister.get("x").name();                    // warned
  const std::string_view type = Secret(Object()).type();                   // warned
  const std::string_view version = Snapshot(snapshot).resource_version();  // warned
  const auto copy = pods.get("x").name();
  const std::string ns = lister.get("x").ns();
  use(lister.get("x").name());
  use(copy);
  const Pod pod = lister.get("x");
  const std::string_view kept = pod.name();
  use(kept);
}

// --- References to local variables
PodSpec of_a_local(const Lister& lister) {
  const Pod pod = lister.get("x");
  return pod.spec();  // warned
}
std::string_view name_of_a_local(const Lister& lister) {
  const Pod pod = lister.get("x");
  return pod.name();  // warned
}
Value of_an_argument(Object object) {
  return object["spec"];  // warned
}
PodSpec of_a_reference(const Pod& pod) { return pod.spec(); }

// --- Clients
void clients(const lookout::rest::Client& client) {
  const auto& dynamic = client.resource<Pod>("shop").dynamic();
  const auto& resource = dynamic.resource();
  const std::string& ns = client.resource<Pod>("shop").dynamic().ns();  // warned
  const auto* po = find_resource(discover(client), "po");               // refused
  const auto all = lookout::rest::discover(client);
  const auto* right = lookout::rest::find_resource(all, "po");
  use(resource.plural);
}

// --- Drafts
void drafts(const Pods& pods, const Pod& pod) {
  const auto spec = Pod::draft("a", "b").spec();            // refused
  const auto labels = pod.edit().metadata().labels();       // refused
  const DraftPart part = pod.edit()["spec"];                // refused
  const auto& set = Secret::draft("a", "b").set_type("x");  // warned
  const Object& original = pod.edit().original();
  pods.create(Pod::draft("a", "b"));
  const auto draft = pod.edit();
  const auto right = draft.spec().containers();
  for (auto c : draft.spec().containers()) c.set_image("x");
  lookout::rest::TypedClient<Secret>(pods.dynamic()).create(Secret::draft("a", "b").set_type("x"));
}

// --- Types that are generated from CRDs
using acme::v1::Workshop;
using Workshops = lookout::rest::TypedClient<Workshop>;

void custom_resources(const Workshops& workshops) {
  for (auto tool : workshops.get("x").spec().tools()) use(tool.name());  // refused
  const auto spec = workshops.get("x").spec();                           // refused
  const auto items = acme::v1::WorkshopList(Object()).items();           // refused
  const auto metadata = acme::v1::WorkshopList(Object()).metadata();     // refused
  const std::string_view name = workshops.get("x").name_2();             // warned
  const std::string copy = workshops.get("x").name_2();
  const Workshop workshop = workshops.get("x");
  const auto right = workshop.spec();
  for (auto tool : workshop.spec().tools()) use(tool.name());
  for (const auto& each : workshops.list().items) use(each.spec().title());
}
acme::v1::WorkshopSpec of_a_local_workshop(const Workshops& workshops) {
  const Workshop workshop = workshops.get("x");
  return workshop.spec();  // warned
}
void custom_drafts(const Workshops& workshops, const Workshop& workshop) {
  const auto spec = Workshop::draft("a", "b").spec();           // refused
  const auto labels = workshop.edit().metadata().labels();      // refused
  const auto& set = Workshop::draft("a", "b").set_name_2("x");  // warned
  workshops.create(Workshop::draft("a", "b").set_name_2("x"));
  const auto draft = workshop.edit();
  const auto right = draft.spec().tools();
  for (auto tool : draft.spec().tools()) tool.set_count(1);
}
