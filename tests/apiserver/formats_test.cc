#include "apiserver/resources/formats.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace lookout::apiserver::resources {
namespace {

using namespace std::string_view_literals;

struct Texts {
  const char* format;
  std::vector<std::string_view> taken;
  std::vector<std::string_view> refused;
};

void PrintTo(const Texts& texts, std::ostream* out) { *out << texts.format; }

class Formats : public testing::TestWithParam<Texts> {};

TEST_P(Formats, EqualKubernetes) {
  for (const std::string_view text : GetParam().taken)
    EXPECT_TRUE(has_format(text, GetParam().format)) << text;
  for (const std::string_view text : GetParam().refused)
    EXPECT_FALSE(has_format(text, GetParam().format)) << text;
}

const std::string kLongName = std::string(63, 'a');
const std::string kLongerName = std::string(64, 'a');

INSTANTIATE_TEST_SUITE_P(
    Server, Formats,
    testing::Values(
        Texts{"bsonobjectid",
              {"507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011"},
              {"", "507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g"}},
        Texts{"byte", {"YQ==", "YWI=", "YWJj", "YWJj+/8="}, {"", "YQ", "Y===", "YQ==YQ==", "YWJ_"}},
        Texts{"cidr",
              {"10.0.0.0/8", "010.0.0.1/08", "fe80::/64", "::ffff:1.2.3.4/99"},
              {"10.0.0.0", "1.2.3.4/99", "10.0.0.0/33", "fe80::/129", "10.0.0.0/-1",
               "10.0.0.0\0/8"sv}},
        Texts{"creditcard",
              {"4111111111111111", "4111-1111-1111-1111", "378282246310005", "5555555555554444",
               "6011111111111117", "30569309025904", "3530111333300000"},
              {"", "4111111111111112", "1234567890123452", "411111111111111"}},
        Texts{"date",
              {"2024-02-29", "0000-01-01"},
              {"", "2020-02-31", "2023-02-29", "2020-2-1", "2020-13-01", "2020-01-01T00:00:00Z"}},
        Texts{"date-time",
              {"2020-01-02T03:04:05Z", "2020-01-02t03:04:05.678z", "2020-01-02T23:59:59,5+02:00"},
              {"", "2020-02-31T03:04:05Z", "2020-01-02T24:00:00Z", "2020-01-02T03:04:60Z",
               "2020-01-02T03:04:05", "2020-01-02 03:04:05Z", "T03:04:05Z"}},
        Texts{"datetime", {"2020-01-02T03:04:05Z"}, {"soon"}},
        Texts{"duration",
              {"0", "+0", "1h30m", "-1.5s", "1.h", ".5s", "3μs", "3µs", "22 ns", "2 weeks",
               "5 Minutes", "1 d", "about 3 days"},
              {"", "soon", "5", "5 months", "h", "99999999999999999999h", "1..h"}},
        Texts{"email",
              {"a@b.c", "a+b@localhost", "\"a b\"@c", "A B <a@b.c>", "\"A, B\" <a@b.c>", "<a@b>",
               "a@[1.2.3.4]", " a@b.c (me)", "ä@ö.de"},
              {"", "nope", "a@", "@b", "a@b@c", ".a@b", "a..b@c", "a@b.", "a b@c", "a@b, c@d",
               "A <a@b", "a@[x]", "a@[1.2.3.400]", "\"\"@c"}},
        Texts{"hexcolor", {"#FFF", "ffffff", "#a1B2c3"}, {"", "#", "x", "#ffff", "#ggg"}},
        Texts{"hostname",
              {"a", "x-y", "1host", "example.com", "a-b.example.com", "x.london", "bücher.de",
               "☃.net", "a--b.com"},
              {"", "-bad-.._", "host-1", "a_b", "a.b", "example.c0m", "-a.com", "a-.com", "a..com",
               "a b", "example.com."}},
        Texts{"ipv4",
              {"1.2.3.4", "010.1.1.1", "::ffff:1.2.3.4"},
              {"", "1.2.3", "1.2.3.256", "::1", "1.2.3.4 ", "1.2.3.4\0"sv}},
        Texts{"ipv6",
              {"::1", "fe80::1", "::ffff:1.2.3.4"},
              {"", "1.2.3.4", "fe80::1%eth0", "::ffff:01.2.3.4", "1::2::3"}},
        Texts{"isbn", {"0321751043", "978-0321751041"}, {"", "0321751042", "978-0321751042"}},
        Texts{"isbn10", {"0-321-75104-3", "097522980X"}, {"978-0321751041", "097522980x"}},
        Texts{"isbn13", {"978 0321 751041"}, {"0321751043", "9780321751040"}}));

INSTANTIATE_TEST_SUITE_P(
    MoreOfTheServer, Formats,
    testing::Values(
        Texts{"k8s-long-name",
              {"a", "a.b-c.1", kLongerName},
              {"", "A", "a..b", "-a", "a-.b", "a_b", ".a", "a."}},
        Texts{
            "k8s-short-name", {"a", "a-1", kLongName}, {"", "A_B", "a.b", "-a", "a-", kLongerName}},
        Texts{
            "mac",
            {"00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01"},
            {"", "zz", "00:00:5e:00:53", "00:00-5e:00:53:01", "00005e005301",
             "00:00:5e:00:53:01:"}},
        Texts{"password", {"", "anything"}, {}},
        Texts{"rgbcolor",
              {"rgb(0,31,255)", "rgb( 1 , 2,  3 )"},
              {"", "rgb(1,2,256)", "rgb(01,2,3)", "rgb(1,2)", "rgba(1,2,3)"}},
        Texts{"ssn", {"111-11-1111", "111 11 1111"}, {"", "111111111", "111-11-111x"}},
        Texts{"uri",
              {"http://example.com", "/path", "mailto:someone", "*", "http://u:p@h:80/a?b=%zz",
               "http://[::1]:80/", "http://[fe80::1%25eth0]/", "http:", "//x y"},
              {"", "not a uri", "example.com", ":x", "http://a b/", "http://h:port/",
               "http://[::1/", "http://[x]/", "/a%zz", "http://u^@h/", "http://h%41/", "/a\n"}},
        Texts{"uuid",
              {"6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B8109DAD11D180B400C04FD430C8"},
              {"", "6ba7b810-9dad-11d1-80b4-00c04fd430c", "6ba7b810-9dad-11d1-80b4-00c04fd430c8a",
               "6ba7b810--9dad-11d1-80b4-00c04fd430c8", "6ba7b8109-dad-11d1-80b4-00c04fd430c8"}},
        Texts{"uuid3",
              {"6ba7b810-9dad-31d1-00b4-00c04fd430c8"},
              {"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}},
        Texts{
            "uuid4",
            {"6ba7b810-9dad-41d1-80b4-00c04fd430c8", "6ba7b810-9dad-41d1-B0b4-00c04fd430c8"},
            {"x", "6ba7b810-9dad-41d1-00b4-00c04fd430c8", "6ba7b810-9dad-51d1-80b4-00c04fd430c8"}},
        Texts{"uuid5",
              {"6ba7b810-9dad-51d1-80b4-00c04fd430c8"},
              {"6ba7b810-9dad-41d1-80b4-00c04fd430c8"}},
        Texts{"unknown", {"", "anything"}, {}}));

}  // namespace
}  // namespace lookout::apiserver::resources
