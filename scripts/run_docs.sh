#!/usr/bin/env bash
# Runs the commands of the documentation from top to bottom, as a reader would: the indented blocks of
# the given pages, or of all that have any, in the order below. After scripts/quickstart.sh. What
# cannot run here (sbatch) is named and left out. As root, Open MPI's mpirun needs two variables.
#
#   scripts/run_docs.sh [PAGE.md ...]
set -euo pipefail
cd "$(dirname "$0")/.."

pages=("$@")
[ ${#pages[@]} -gt 0 ] || pages=(docs/{build,data,training,resume,processes,compare,tasks,generate,inspect,downstream,retrieval,export,prior}.md)
for page in "${pages[@]}"; do
  # Blocks of JSON and lists of files are indented too: a command begins with a word that it knows.
  commands=$(awk '
    /^    / { line = substr($0, 5)
              if (!inside) { keep = line ~ /^(build\/|\.\/scripts\/|scripts\/|mkdir |echo |meson |mpirun |python3 |[A-Z_]+=)/ }
              inside = 1
              if (line ~ /^sbatch /) print "left out: " line > "/dev/stderr"
              if (keep) print line
              next }
    { inside = 0 }' "$page")
  [ -n "$commands" ] || continue
  if [[ $commands == *mpirun* ]] && ! mpirun true; then
    echo "run_docs.sh: $page: mpirun does not start here; as root, set OMPI_ALLOW_RUN_AS_ROOT=1" \
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 (Open MPI 4) or PRTE_ALLOW_RUN_AS_ROOT=1" \
      "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 (Open MPI 5)" >&2
    exit 1
  fi
  echo "run_docs.sh: $page"
  bash -euxo pipefail -c "$commands"
done
echo "run_docs.sh: every command of ${#pages[@]} pages ended with 0"
