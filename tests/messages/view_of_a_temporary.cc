#include <lookout/api/object.h>

int main() {
#if defined(MISTAKE)
  return lookout::api::Object::parse("{}").labels().exists() ? 1 : 0;
#else
  const auto object = lookout::api::Object::parse("{}");
  return object.labels().exists() ? 1 : 0;
#endif
}
