# Completion of bamtrain and bamdata for bash. Commands, options and their values come from the
# program's own help, keys of --set and their values from its config reference, so that they are those
# of the installed version.

_bamtrain_words() { # words of PROGRAM [COMMAND] --help: commands, then options
  "$@" --help 2>/dev/null | awk '
    /^Commands:/ { commands = 1; next }
    /^[A-Za-z]/ { commands = 0 }
    commands && /^  [a-z]/ { print $1 }
    /^  -/ { for (i = 1; $i ~ /^-/; ++i) { sub(/,$/, "", $i); print $i } }'
}

_bamtrain_option_values() { # OPTION PROGRAM [COMMAND]: of an option that takes one of some words
  local option=$1
  shift
  "$@" --help 2>/dev/null | awk -v option="$option" '
    /^  -/ {
      inside = 0
      for (i = 1; $i ~ /^-/; ++i) {
        sub(/,$/, "", $i)
        if ($i == option) inside = 1
      }
      if (inside && $i ~ /[|]/) { gsub(/[|]/, "\n", $i); print $i; exit }
    }
    /^[A-Z]/ || /^$/ { inside = 0 }
    inside { text = text " " $0 }
    END {
      if (match(text, /\(one of [^)]*\)/)) {
        list = substr(text, RSTART + 8, RLENGTH - 9)
        gsub(/[ ,]+/, "\n", list)
        print list
      }
    }'
}

_bamtrain_topics() { # PROGRAM: of bamtrain help
  "$1" help 2>/dev/null | awk '
    /^[A-Z]/ { section = $1; next }
    (section == "Pages:" || section == "Configuration:") && /^  [a-z]/ { print $1 }
    section == "Mechanisms" && /^  / {
      gsub(/,/, "")
      for (i = /^  [a-z]/ ? 2 : 1; i <= NF; ++i) print $i  # after the kind
    }'
  _bamtrain_words "$1" | grep -v '^-'
}

# shellcheck disable=SC2016  # backquotes of Markdown
_bamtrain_keys() { # PROGRAM: keys and sections of a configuration
  "$1" help config 2>/dev/null | sed -n 's/^- `\([a-z_.]*\)`.*/\1/p; s/^## \([a-z_.]*\): .*/\1/p'
}

_bamtrain_key_values() { # KEY PROGRAM: words that a config key can be, names of mechanisms among them
  "$2" help config "$1" 2>/dev/null | awk -v entry="- \`$1\` (" '
    index($0, entry) == 1 { inside = 1; kind = substr($0, length(entry) + 1); next }
    inside && (/^- `/ || /^$/) { exit }
    inside && /^  - `/ { split($0, parts, "`"); print parts[2]; whole = 1; next }
    inside && !whole { kind = kind " " substr($0, 3) }
    END {
      sub(/[;)].*/, "", kind)
      if (kind == "boolean") print "true\nfalse"
      if (sub(/^one of /, "", kind)) { gsub(/, /, "\n", kind); print kind }
    }'
}

# shellcheck disable=SC2016  # backquotes of Markdown
_bamtrain() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local commands command="" key="" lead="" i
  COMPREPLY=()
  # Bash takes "key=value" apart at "=", which is a word of its own then, unless it was told not to.
  if [ "$before" = --set ] && [[ $word == ?*=* ]]; then
    key=${word%%=*} lead=$key= word=${word#*=}
  elif ((COMP_CWORD > 2)) && [ "$word" = "=" ] && [ "${COMP_WORDS[COMP_CWORD - 2]}" = --set ]; then
    key=$before word=""
  elif ((COMP_CWORD > 3)) && [ "$before" = "=" ] && [ "${COMP_WORDS[COMP_CWORD - 3]}" = --set ]; then
    key=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [ -n "$key" ]; then
    mapfile -t COMPREPLY < <(compgen -P "$lead" -W "$(_bamtrain_key_values "$key" "$program")" -- "$word")
    [ ${#COMPREPLY[@]} -gt 0 ] || compopt -o default
    return
  fi
  if [ "$before" = --set ] && [ "${program##*/}" = bamtrain ]; then
    compopt -o nospace
    mapfile -t COMPREPLY < <(compgen -S = -W "$("$program" help config 2>/dev/null |
      sed -n 's/^- `\([a-z_.]*\)`.*/\1/p')" -- "$word")
    return
  fi
  if [ "$before" = help ] && [ "${program##*/}" = bamtrain ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_bamtrain_topics "$program")" -- "$word")
    return
  fi
  if [ "$before" = config ] && ((COMP_CWORD > 2)) && [ "${COMP_WORDS[COMP_CWORD - 2]}" = help ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_bamtrain_keys "$program")" -- "$word")
    return
  fi
  commands=$(_bamtrain_words "$program" | grep -v '^-')
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if grep -qxF -- "${COMP_WORDS[i]}" <<<"$commands"; then command=${COMP_WORDS[i]}; fi
  done
  if [[ $before == -* ]] && [[ $word != -* ]]; then
    # shellcheck disable=SC2086  # no command is no word
    mapfile -t COMPREPLY < <(compgen -W "$(_bamtrain_option_values "$before" "$program" $command)" -- "$word")
    [ ${#COMPREPLY[@]} -eq 0 ] || return
  fi
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
