#!/usr/bin/env bash
# Runs a training command inside a batch job: SIGUSR1, which Slurm sends before the time limit, goes
# on to the command, which saves a checkpoint and exits with code 85; the job is then queued again, and the
# same command resumes. So it is where a process was lost (code 8, or that of a killed one), until the job has been
# queued again nine times.
#
#   scripts/slurm/run.sh COMMAND [ARGUMENT...]
#
# The exit code is the command's; 0 where the job was queued again.
set -uo pipefail

if [ $# -eq 0 ]; then
  echo "run.sh: missing command; usage: scripts/slurm/run.sh COMMAND [ARGUMENT...]" >&2
  exit 2
fi

# Signals go on to the command, those that come before its process is known as soon as it is.
command='' early=''
pass_on() {
  if [ -n "$command" ]; then kill -"$1" "$command" 2>/dev/null; else early=$1; fi
}
trap 'pass_on USR1' USR1
trap 'pass_on TERM' TERM
"$@" &
command=$!
[ -z "$early" ] || pass_on "$early"
# A signal ends `wait` early, with the signal's code; the command has ended when it is no longer
# there, and only then its own code is certain.
while :; do
  wait "$command"
  kill -0 "$command" 2>/dev/null || break
done
wait "$command"
code=$?

if [ -n "${SLURM_JOB_ID:-}" ]; then
  again=''
  [ "$code" -ne 85 ] || again=saved
  case $code in
    8 | 137 | 143) [ "${SLURM_RESTART_COUNT:-0}" -ge 9 ] || again='a process was lost' ;;
  esac
  if [ -n "$again" ]; then
    echo "run.sh: $again; job $SLURM_JOB_ID is queued again"
    scontrol requeue "$SLURM_JOB_ID" || exit "$code"
    exit 0
  fi
fi
exit "$code"
