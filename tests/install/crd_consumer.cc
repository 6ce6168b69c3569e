// Uses types from the installed generator.
#include <cstdio>

#include "widget.h"

int main() {
  auto draft = consumer::v1::Widget::draft("a", "default");
  draft.spec().set_size(3);
  const consumer::v1::Widget widget = draft.build();
  const bool ok = widget.spec().size() == 3 && widget.kind() == "Widget";
  std::printf("lookout_add_crd: %s\n", ok ? "ok" : "FAILED");
  return ok ? 0 : 1;
}
