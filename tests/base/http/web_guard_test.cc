// Detection of requests from foreign web pages, for servers without credentials.
#include "lookout/base/http/web_guard.h"

#include <gtest/gtest.h>

namespace lookout::http {
namespace {

struct HostCase {
  const char* host;
  bool allowed;
};
void PrintTo(const HostCase& c, std::ostream* out) { *out << c.host; }
class HostCheckTest : public testing::TestWithParam<HostCase> {};

TEST_P(HostCheckTest, AcceptsOnlyNamesSafeFromDnsRebinding) {
  EXPECT_EQ(host_is_allowed(GetParam().host, {"Services.example.com", "short"}),
            GetParam().allowed);
}

INSTANTIATE_TEST_SUITE_P(
    , HostCheckTest,
    testing::Values(HostCase{"127.0.0.1:8002", true}, HostCase{"127.0.0.1", true},
                    HostCase{"10.1.2.3:80", true}, HostCase{"[::1]:8002", true},
                    HostCase{"[fd00::1]", true}, HostCase{"localhost:8002", true},
                    HostCase{"LOCALHOST.", true}, HostCase{"lookout.localhost:1", true},
                    HostCase{"services.example.com", true},
                    HostCase{"SERVICES.example.com:1", true}, HostCase{"short:80", true},
                    HostCase{"evil.example.com", false}, HostCase{"evil.example.com:8002", false},
                    HostCase{"services.example.com.evil.com", false},
                    HostCase{"xservices.example.com", false}, HostCase{"localhost.evil.com", false},
                    HostCase{"127.0.0.1.evil.com", false}, HostCase{"127.0.0.1@evil.com", false},
                    HostCase{"notlocalhost", false}, HostCase{"127.1", false}, HostCase{"", false},
                    HostCase{":80", false}, HostCase{"[::1", false}, HostCase{"[::1]x", false},
                    HostCase{"localhost:8002, evil.com", false}, HostCase{"localhost:x", false}));

struct HeadCase {
  const char* name;
  const char* target;
  std::map<std::string, std::string, std::less<>> headers;
  bool foreign;
};
void PrintTo(const HeadCase& c, std::ostream* out) { *out << c.name; }
class ForeignRequests : public testing::TestWithParam<HeadCase> {};

TEST_P(ForeignRequests, AreRecognisedByTheirHeaders) {
  Request request;
  request.target = GetParam().target;
  request.headers = GetParam().headers;
  EXPECT_EQ(!why_foreign(request, {"friend"}).empty(), GetParam().foreign);
}

INSTANTIATE_TEST_SUITE_P(
    , ForeignRequests,
    testing::Values(
        HeadCase{"Client", "/api", {{"host", "127.0.0.1:8001"}}, false},
        HeadCase{"OldClientWithoutHost", "/api", {}, false},
        HeadCase{"AllowedName", "/api", {{"host", "friend:8001"}}, false},
        HeadCase{"Rebound", "/api", {{"host", "evil.example.com:8001"}}, true},
        HeadCase{"EmptyHost", "/api", {{"host", ""}}, true},
        // The target overrides the header.
        HeadCase{"ReboundInTarget", "http://evil.example.com/api", {{"host", "localhost"}}, true},
        HeadCase{"AddressInTarget", "http://127.0.0.1:8001/api", {{"host", "localhost"}}, false},
        HeadCase{"OwnPage",
                 "/api",
                 {{"host", "localhost:8001"},
                  {"origin", "http://LOCALHOST:8001"},
                  {"sec-fetch-site", "same-origin"}},
                 false},
        HeadCase{"TypedIntoTheAddressBar",
                 "/api",
                 {{"host", "localhost:8001"}, {"sec-fetch-site", "none"}},
                 false},
        HeadCase{"ForeignOrigin",
                 "/api",
                 {{"host", "localhost:8001"}, {"origin", "https://evil.example.com"}},
                 true},
        HeadCase{"OtherPort",
                 "/api",
                 {{"host", "localhost:8001"}, {"origin", "http://localhost:3000"}},
                 true},
        HeadCase{"OtherNameOfThisMachine",
                 "/api",
                 {{"host", "127.0.0.1:8001"}, {"origin", "http://localhost:8001"}},
                 true},
        HeadCase{"NoOrigin", "/api", {{"host", "localhost:8001"}, {"origin", "null"}}, true},
        HeadCase{"EmptyOrigin", "/api", {{"host", "localhost:8001"}, {"origin", ""}}, true},
        HeadCase{"OriginWithoutHost", "/api", {{"origin", "http://"}}, true},
        HeadCase{
            "Image", "/api", {{"host", "localhost:8001"}, {"sec-fetch-site", "cross-site"}}, true},
        HeadCase{"SameSite",
                 "/api",
                 {{"host", "localhost:8001"}, {"sec-fetch-site", "same-site"}},
                 true}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace lookout::http
