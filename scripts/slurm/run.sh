#!/usr/bin/env bash
# Runs a training command inside a batch job: SIGUSR1, which Slurm sends before the time limit, goes
# on to the command, which saves a checkpoint and ends with 85; the job is then queued again, and the
# same command resumes.
#
#   scripts/slurm/run.sh COMMAND [ARGUMENT...]
#
# The exit code is the command's; 0 where the job was queued again.
set -uo pipefail

if [ $# -eq 0 ]; then
  echo "run.sh: expected a command, found none; remedy: scripts/slurm/run.sh COMMAND" >&2
  exit 2
fi

"$@" &
command=$!
trap 'kill -USR1 "$command" 2>/dev/null' USR1
trap 'kill -TERM "$command" 2>/dev/null' TERM
# A signal ends `wait` early; the command has ended when it is no longer there.
while :; do
  wait "$command"
  code=$?
  kill -0 "$command" 2>/dev/null || break
done

if [ "$code" -eq 85 ] && [ -n "${SLURM_JOB_ID:-}" ]; then
  echo "run.sh: saved; job $SLURM_JOB_ID is queued again"
  scontrol requeue "$SLURM_JOB_ID" || exit 85
  exit 0
fi
exit "$code"
