#include "lookout/registry/endpoint.h"

#include <gtest/gtest.h>

#include <string>

#include "lookout/registry/service_instance.h"

namespace lookout::registry {
namespace {

TEST(EndpointTest, IsParsed) {
  const Endpoint e = "grpc://[fd00::1]:9000/base?isSecure=true&note=a%20b+c#x";
  ASSERT_TRUE(e.valid()) << e.defect();
  EXPECT_EQ(e.scheme(), "grpc");
  EXPECT_EQ(e.host(), "fd00::1");
  EXPECT_EQ(e.port(), 9000);
  EXPECT_EQ(e.authority(), "[fd00::1]:9000");
  EXPECT_EQ(e.query(), "isSecure=true&note=a%20b+c");
  EXPECT_EQ(e.parameter("note"), "a b c");
  EXPECT_EQ(e.parameter("other"), std::nullopt);
  EXPECT_TRUE(e.secure());
  EXPECT_TRUE(e.has_scheme("GRPC"));
  EXPECT_FALSE(e.has_scheme("grpcs"));
}

TEST(EndpointTest, BuildsUrls) {
  const Endpoint e = "http://10.1.2.3:8000?isSecure=false";
  EXPECT_EQ(e.url("/hello?name=a"), "http://10.1.2.3:8000/hello?name=a");
  EXPECT_EQ(e.url("hello"), "http://10.1.2.3:8000/hello");
  EXPECT_EQ(e.url("?q=1"), "http://10.1.2.3:8000?q=1");
  EXPECT_EQ(e.url(), "http://10.1.2.3:8000");
  EXPECT_FALSE(e.secure());
  EXPECT_EQ(Endpoint("https://h").url("/x"), "https://h/x");
}

TEST(EndpointTest, IsBuiltFromParts) {
  EXPECT_EQ(Endpoint("http", "10.0.0.1", 80), "http://10.0.0.1:80");
  EXPECT_EQ(Endpoint("http", "fd00::1", 80), "http://[fd00::1]:80");
  EXPECT_EQ(Endpoint("http", "[fd00::1]", 80), "http://[fd00::1]:80");
  EXPECT_FALSE(Endpoint("http", "10.0.0.1", 0).valid());
  EXPECT_FALSE(Endpoint("", "10.0.0.1", 80).valid());
}

TEST(EndpointTest, ReportsWhyTextIsInvalid) {
  for (const auto& [text, why] : {std::pair{"", "empty"},
                                  {"10.0.0.1", "no scheme"},
                                  {"1http://h:1", "scheme"},
                                  {"http://", "no host"},
                                  {"http://:80", "no host"},
                                  {"http://h:", "port"},
                                  {"http://h:0", "port"},
                                  {"http://h:65536", "port"},
                                  {"http://h:8o", "port"},
                                  {"http://[::1", "not closed"},
                                  {"http://[h]:1", "IPv6"},
                                  {"http://[::1]x:1", "host"},
                                  {"http://me:secret@h:1", "user"},
                                  {"http://a b:1", "spaces"},
                                  {"http://h:1/\n", "control characters"}}) {
    const Endpoint e = text;
    EXPECT_FALSE(e.valid()) << text;
    EXPECT_NE(std::string(e.defect()).find(why), std::string::npos) << text << ": " << e.defect();
    EXPECT_EQ(e.text(), text);
    EXPECT_EQ(e.scheme(), "");
    EXPECT_EQ(e.port(), 0);
    EXPECT_EQ(e.url("/x"), text) << "what is no endpoint leads nowhere else";
  }
  EXPECT_FALSE(Endpoint("http://" + std::string(9000, 'a')).valid());
}

TEST(EndpointTest, InstancesHaveEndpointsByScheme) {
  ServiceInstance instance{.endpoints = {"no endpoint", "grpc://h:1", "HTTP://h:2", "http://h:3"}};
  ASSERT_NE(instance.endpoint("http"), nullptr);
  EXPECT_EQ(*instance.endpoint("http"), "HTTP://h:2");
  EXPECT_EQ(*instance.endpoint(), "grpc://h:1");
  EXPECT_EQ(instance.endpoint("ws"), nullptr);
  // The port belongs to a sidecar.
  instance.endpoints[2].set_announced(false);
  EXPECT_EQ(*instance.endpoint("http"), "http://h:3");
}

TEST(EndpointTest, ConvertsToText) {
  const Endpoint e = "http://h:1";
  const std::string& text = e;
  EXPECT_EQ(text, "http://h:1");
  EXPECT_EQ(e, text);
  EXPECT_NE(e, "http://h:2");
}

}  // namespace
}  // namespace lookout::registry
