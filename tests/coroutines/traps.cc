// Input of scripts/check-coroutines.sh, not compiled: the script must find exactly the lines that
// end in "found".
namespace {

Awaitable<void> conditions(Clock& clock, Watch& watch, std::vector<Event>& events) {
  if (co_await is_empty(target)) co_return;                                                // found
  if (!ready && !co_await is_empty(target)) co_return;                                     // found
  if (const bool more = co_await read(); !more) co_return;                                 // found
  if (const Result result = make({.limit = 5}); result.more && co_await is_empty(target))  // found
    co_return;
  while (co_await watch.next(events)) continue;  // found
  do {
    ++tries;
  } while (co_await watch.next(events));         // found
  for (; co_await watch.next(events);) ++tries;  // found
  for (const Event& event : co_await all()) {    // found
    if (constexpr bool kDeep = true; event.last) {
      if (co_await is_empty(event)) co_return;  // found
    }
  }
  switch (co_await state()) {  // found
    default:
      break;
  }
}

Awaitable<void> choices(bool old) {
  co_await send(old ? first() : second());                      // found
  auto answer = co_await client.send({.body = old ? a : b});    // found
  co_await (old ? first() : second());                          // found
  co_await make(request)->send(headers, old ? first() : ""sv);  // found
  co_await send(request,
                old ? "?" : ")");  // found
}

Awaitable<void> right(bool old) {
  // if (co_await is_empty(target)) and co_await send(old ? a : b) stand in a comment.
  const char* const text = "if (co_await f(a ? b : c))";
  const char* const raw = R"(while (co_await f(a ? b : c)))";
  const bool empty = co_await is_empty(target);
  if (empty) co_await leave();
  if (old) {
    co_await leave();
  } else if (text[0] == '(') {
    co_await leave();
  }
  for (bool more = true; more;) more = co_await next();
  while (more && !stop) co_await leave();
  const auto& body = old ? first() : second();
  co_await send(body), log(old ? 1 : 2);
  const int n = co_await count() ? 1 : 0;
  if (start([]() -> Awaitable<void> { co_await leave(); })) co_return;
  co_await run([&](int one) { return one > 0 ? one : -one; });
  old ? first() : second();
}

}  // namespace
