#include <lookout/api/object.h>
#include <lookout/controller/finalizers.h>

int main() {
  using namespace lookout;
  const auto object = api::Object::parse(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","finalizers":["example.com/a"]}})");
  return controller::has_finalizer(object, "example.com/a") ? 0 : 1;
}
