#!/usr/bin/env bash
# Finds uses of co_await that GCC 12 miscompiles (docs/dependencies.md): in the condition of an if, while, for or switch, and
# with a conditional (?:) in the arguments of the awaited call. Prints them and fails if there are any.
#
# usage: scripts/check-coroutines.sh [FILE...]       (default: all sources)
set -euo pipefail

if (($# == 0)); then
  cd "$(dirname "$0")/.."
  # tests/coroutines has examples that this must find.
  mapfile -t files < <(git ls-files '*.cc' '*.h' | grep -v '^tests/coroutines/')
  set -- "${files[@]}"
fi

# shellcheck disable=SC2016 # it is Perl
perl -0777 -ne '
  # Replace by blanks, to keep the positions.
  sub blank { my ($text) = @_; $text =~ s/[^\n]/ /g; return $text }
  sub found {
    my ($at, $what) = @_;
    my $line = 1 + (substr($code, 0, $at) =~ tr/\n//);
    print "$ARGV:$line: $what: ", (split /\n/, $source)[$line - 1] =~ s/^\s+//r, "\n";
    $bad = 1;
  }
  $source = $_;
  $code = s{(R"(\w*)\(.*?\)\2"|//[^\n]*|/\*.*?\*/|(?<!\w)\x27(?:[^\x27\\\n]|\\.)+\x27|"(?:[^"\\\n]|\\.)*")}{blank($1)}gesr;
  next unless $code =~ /\bco_await\b/;

  # The bodies of lambdas are separate coroutines; braces of initializers are not.
  my $parens = qr/(\((?:[^()]++|(?1))*+\))/;
  while ($code =~ /\b(if|while|for|switch)\b\s*(?:constexpr\s*)?(?=\()/g) {
    my ($at, $word) = ($-[0], $1);
    my $start = pos $code;
    substr($code, $start) =~ /\A$parens/ or next;
    my $condition = without_lambdas($1);
    found($start + $-[0], "co_await in the condition of $word") if $condition =~ /\bco_await\b/;
    pos($code) = $start;
  }
  while ($code =~ /\bco_await\b/g) {
    my $start = pos $code;
    # The operand ends with its statement, at a comma, or where a parenthesis from before it is closed.
    my $depth = 0;
    my $rest = without_lambdas(substr($code, $start, 4000));
    while ($rest =~ /([(){};,?]|\[|\])/g) {
      my $sign = $1;
      if ($sign =~ /[(\[{]/) { ++$depth }
      elsif ($sign =~ /[)\]}]/) { last if --$depth < 0 }
      elsif ($depth == 0) { last }  # a choice between results is none among arguments
      elsif ($sign eq "?") { found($start + $-[0], "?: in what is awaited") ; last }
    }
    pos($code) = $start;
  }

  # A lambda is [captures](parameters) specifiers { body }.
  sub without_lambdas {
    my ($text) = @_;
    $text =~ s/(\[[^\[\]]*\]\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*(?:mutable\b\s*|noexcept\b\s*)*(?:->[^{;]*)?)(\{(?:[^{}]++|(?2))*+\})/$1 . blank($2)/ge;
    return $text;
  }
  END { exit($bad ? 1 : 0) }
' "$@" | sort -t: -k1,1 -k2,2n -u || {
  echo "$0: give the result a name first, in a statement of its own" >&2
  exit 1
}
