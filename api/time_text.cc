#include "api/time_text.h"

#include "lookout/api/time.h"

namespace lookout::api::detail {

void TimeText::write(std::int64_t time) {
  if (time == time_) return;
  time_ = time;
  // (Rounds down, also before 1970.)
  const std::int64_t day = (time - kBegin) / kDay;
  if (day != day_) {
    const std::string date = format_time(Time(std::chrono::seconds(time)));
    std::memcpy(text_, date.data(), kSize);
    day_ = day;
    return;
  }
  const std::int64_t second = (time - kBegin) % kDay;
  two(11, second / 3600);
  two(14, second / 60 % 60);
  two(17, second % 60);
}

}  // namespace lookout::api::detail
