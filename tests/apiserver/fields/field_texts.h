// JSON helpers for tests of field sets.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "apiserver/fields/field_set.h"
#include "apiserver/fields/fields_v1.h"
#include "apiserver/json.h"

namespace lookout::apiserver::fields {

inline json::Document value(const std::string& text) {
  json::Document document;
  document.Parse(text.c_str());
  EXPECT_FALSE(document.HasParseError()) << text;
  return document;
}

inline std::string text(const FieldSet& set) {
  json::Document document;
  return json::to_json(to_fields_v1(set, document.GetAllocator()));
}

}  // namespace lookout::apiserver::fields
