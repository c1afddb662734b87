#!/usr/bin/env bash
# compare.sh COMMIT PATTERN ROUNDS BENCHTIME: builds the benchmarks of a commit and of this tree, runs them in turns, so that a slow moment
# of the machine strikes both, and has benchstat say what differs.
set -euo pipefail
cd "$(dirname "$0")/../.."
base=$1 pattern=$2 rounds=$3 benchtime=$4
if ! git rev-parse --quiet --verify "$base^{commit}" >/dev/null; then
	echo "BASE=$base is no commit: make bench-compare BASE=main" >&2
	exit 2
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tree"
git archive "$base" | tar x -C "$dir/tree"
(cd "$dir/tree" && go test -c -o "$dir/base" ./bench)
go test -c -o "$dir/this" ./bench

measure() { # in the directory of the sources, as go test does
	local name=$1 tree=$2
	echo "$name:"
	(cd "$tree/bench" && "$dir/$name" -test.run '^$' -test.bench "$pattern" -test.benchtime "$benchtime" -test.timeout 30m) | tee -a "$dir/$name.txt"
}
for ((round = 0; round < rounds; round++)); do
	measure base "$dir/tree"
	measure this .
done
if ! grep -q '^Benchmark' "$dir/base.txt" || ! grep -q '^Benchmark' "$dir/this.txt"; then
	echo "BENCH=$pattern matches no benchmark of both commits; on the command line of make, a dollar sign is written twice" >&2
	exit 2
fi
cd bench/report
go tool benchstat base="$dir/base.txt" this="$dir/this.txt"
