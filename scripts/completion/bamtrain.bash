# Completion of bamtrain and bamdata for bash: shows what `PROGRAM --complete` answers.

_bamtrain() {
  local words=() before="" word part candidate
  # Bash takes "key=value" apart at "=". The program gets the whole, bash the part at the cursor.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [ ${#words[@]} -gt 0 ] && { [ "$word" = = ] || { [ "$before" = = ] && [ -n "$word" ]; }; }; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    before=$word
  done
  part=${word#=}
  COMPREPLY=()
  while IFS=$'\t' read -r candidate _; do
    if [ "$candidate" = :files ]; then
      compopt -o default
    else
      COMPREPLY+=("${candidate#"${words[-1]%"$part"}"}")
    fi
  done < <("${COMP_WORDS[0]/#\~/$HOME}" --complete "${words[@]}" 2>/dev/null)
  [ ${#COMPREPLY[@]} -ne 1 ] || [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}

complete -F _bamtrain bamtrain bamdata
