#!/usr/bin/env bash
# Checks the architecture (docs/architecture.md): includes only point to lower layers, and no folder includes a private header
# of another. Prints violations and fails if there are any.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck disable=SC2016 # it is Perl
git ls-files '*.cc' '*.h' | xargs perl -ne '
  BEGIN {
    # What stands below each folder.
    my @floors = qw(base api rest tools lister informer controller registry);
    for my $i (0 .. $#floors) {
      $below{$floors[$i]}{$floors[$_]} = 1 for 0 .. $i;
    }
    $below{registry}{controller} = 0;  # it stands beside it
    $below{apiserver}{$_} = 1 for qw(base api rest apiserver);
    $below{testing}{$_} = 1 for @floors, qw(apiserver testing);
    $below{cmd}{$_} = 1 for @floors, qw(apiserver cmd);
  }
  my ($folder) = $ARGV =~ m{^(?:include/lookout/)?(\w+)/};
  next if $ARGV =~ m{^include/lookout/\w+\.h$} || !$below{$folder};  # tests, benchmarks and examples may include everything
  next unless /^\s*#include "([^"]+)"/;
  my $header = $1;
  if ($header =~ m{^lookout/(?:(\w+)/|\w+\.h$)}) {
    next unless $1;  # of the whole, such as its version
    # Generated types belong to api.
    my $owner = $1 eq "k8s" ? "api" : $1;
    next if $below{$folder}{$owner};
    print "$ARGV:$.: $folder/ must not include $header, which stands above it\n";
    $bad = 1;
  } elsif ($header =~ m{^(\w+)/} && $1 ne $folder) {
    # Separate libraries: for `lookout bench` and bench/, for `lookout generate`, `lookout new` and the build.
    next if $ARGV =~ m{^cmd/bench/} && $header =~ m{^bench/load/};
    # The peer of a private protocol.
    next if $ARGV =~ m{^testing/sim/etcd_} && $header =~ m{^apiserver/(grpc|storage/etcd3)/};
    next if $ARGV =~ m{^cmd/(generate\.cc$|new/)} && $header =~ m{^api/codegen/};
    print "$ARGV:$.: $header is private to $1/: make it public, or move what both need down\n";
    $bad = 1;
  } elsif ($ARGV =~ m{^include/} && $header !~ m{^lookout/}) {
    print "$ARGV:$.: a public header must not include $header, which is not installed\n";
    $bad = 1;
  }
} continue {
  close ARGV if eof;
  END { exit($bad ? 1 : 0) }
'
