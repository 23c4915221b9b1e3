# Completion of bamtrain and bamdata for bash. Commands and options come from the program's own
# help, keys of --set from its config reference, so that they are those of the installed version.

_bamtrain_words() { # words of PROGRAM [COMMAND] --help: commands, then options
  "$@" --help 2>/dev/null | awk '
    /^Subcommands:/ { commands = 1; next }
    /^[A-Za-z]/ { commands = 0 }
    commands && /^  [a-z]/ { print $1 }
    /^  +-/ { n = split($1, names, ","); for (i = 1; i <= n; ++i) print names[i] }'
}

# shellcheck disable=SC2016  # backquotes of Markdown
_bamtrain() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local commands command="" i
  COMPREPLY=()
  if [ "$before" = --set ] && [ "${program##*/}" = bamtrain ]; then
    compopt -o nospace
    mapfile -t COMPREPLY < <(compgen -S = -W "$("$program" help config 2>/dev/null |
      sed -n 's/^- `\([a-z_.]*\)`.*/\1/p')" -- "$word")
    return
  fi
  if [ "$before" = help ] && [ "${program##*/}" = bamtrain ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" help 2>/dev/null | awk '/^  [a-z]/ { print $1 }')" \
      -- "$word")
    return
  fi
  commands=$(_bamtrain_words "$program" | grep -v '^-')
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if grep -qxF -- "${COMP_WORDS[i]}" <<<"$commands"; then command=${COMP_WORDS[i]}; fi
  done
  if [[ $word == -* ]]; then
    # shellcheck disable=SC2086  # no command is no word
    mapfile -t COMPREPLY < <(compgen -W "$(_bamtrain_words "$program" $command | grep '^-')" -- "$word")
  elif [ -z "$command" ] && [[ $before != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
  else
    compopt -o default
  fi
}

complete -F _bamtrain bamtrain bamdata
