#!/usr/bin/env bash
# Finds unbounded waits in the tests, which would hang instead of failing. Prints them and fails if there are any.
# tests/support/bounded_wait.h, eventually.h, gate.h, hold_up.h and stopped.h have bounded waits.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck disable=SC2016 # it is Perl
git ls-files 'tests/*.cc' 'tests/*.h' | grep -v '^tests/support/bounded_wait.h$' | xargs perl -0777 -ne '
  sub found {
    my ($at) = @_;
    my $line = 1 + (substr($_, 0, $at) =~ tr/\n//);
    print "$ARGV:$line: ", (split /\n/)[$line - 1], "\n";
    $bad = 1;
  }
  # A discarded future.
  found($-[0]) while /get_future\(\)\s*\.\s*(?:get|wait)\(\)/g;
  # A wait without a result: of a future, a latch, a thread.
  found($-[1]) while /^\s*((?!co_await|return)[\w.>()\[\]-]+(?:\.|->)wait\(\);)/mg;
  # Futures by their declaration. (Elements of containers have no names.)
  my %names;
  $names{$1} = 1 while /(?:std::(?:shared_)?future<[^;={}]*>|auto)&?\s+(\w+)\s*=\s*(?:std::async|\w+(?:\.|->)get_future\(\))/g;
  $names{$1} = 1 while /std::(?:shared_)?future<[\w:<> ,]*>&?\s+(\w+)\s*[;({=]/g;
  for my $name (keys %names) {
    found($-[1]) while /(?<![\w.>])(\Q$name\E\.(?:get|wait)\(\))/g;
  }
  END { exit($bad ? 1 : 0) }
' | sort -u || {
  echo "$0: these wait without a bound: use test::get() or test::wait_for() (tests/support/bounded_wait.h)" >&2
  exit 1
}
