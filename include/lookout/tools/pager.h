// ListPager: reads long lists page by page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "lookout/api/object.h"
#include "lookout/rest/client.h"
#include "lookout/rest/options.h"

namespace lookout::pager {

/// Requests one page; rest::ResourceClient::list() in most programs. After a stop it should throw
/// or return soon, because each_list_item() waits for it.
using PageFunc = std::function<rest::List<>(const rest::ListOptions& options, std::stop_token)>;

struct PagerOptions {
  /// Items per page, unless the list options set a limit; 0: all at once.
  std::int64_t page_size = 500;
  /// Makes list() fall back to a full list if the continue token expires before the last page.
  bool full_list_if_expired = true;
  /// The number of pages that each_list_item() reads ahead.
  std::size_t page_buffer_size = 5;
};

/// client-go's ListPager. (Informers paginate by themselves.) Blocking; not for use on the event
/// loop.
class ListPager {
 public:
  explicit ListPager(PageFunc page, PagerOptions options = {});
  explicit ListPager(rest::ResourceClient client, PagerOptions options = {});

  struct Result {
    rest::List<> list;
    bool paginated = false;  ///< the list had several pages
  };
  /// Returns all items and counts those that cannot be decoded, as a single list request does. Throws
  /// what a page throws, and TransportError of kind kCancelled after a stop.
  Result list(rest::ListOptions options = {}, std::stop_token stop = {}) const;

  /// Calls `each` for all items while another thread fetches the next pages. An exception from
  /// `each` or from a page ends it and is rethrown; so does an expired page, because the items
  /// before it have been delivered already. If items cannot be decoded, it continues with the others
  /// and throws api::DecodeError at the end.
  void each_list_item(rest::ListOptions options,
                      const std::function<void(const api::Object&)>& each,
                      std::stop_token stop = {}) const;

 private:
  const PageFunc page_;
  const PagerOptions options_;
};

}  // namespace lookout::pager
