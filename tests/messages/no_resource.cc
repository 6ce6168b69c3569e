#include <lookout/rest/client.h>

struct Thing : lookout::api::TypedObject {
  using TypedObject::TypedObject;
#if !defined(MISTAKE)
  static constexpr lookout::api::ResourceType kResource{"x.test", "v1", "Thing", "things", true};
#endif
};

int main() {
  const lookout::rest::Client client{lookout::rest::Config{}};
  client.resource<Thing>("shop");
}
