# Prints what zsh completes in a command line, one a line, in its order:
#
#   zsh -f complete.zsh SCRIPT LINE
#
# A second zsh, on a pseudo-terminal, sources the script, gets the line and presses a key. Its compadd
# prints the words that match with what it would put around them.

setopt extended_glob
if [[ -z $COMPLETED_SCRIPT ]]; then
  zmodload zsh/zpty
  export COMPLETED_SCRIPT=$1
  zpty shell zsh -f -i
  zpty -w shell "source ${(q)0:a}"
  zpty -r shell seen '*<ready>*'
  zpty -n -w shell "$2"$'\x14'
  zpty -r shell seen '*<done>*'
  for line in ${(f)${seen//$'\r'/}}; do
    [[ $line != (#b)*'<word>'(*)'</word>'* ]] || print -r -- "$match[1]"
  done
  exit
fi

setopt extended_glob
PROMPT=
autoload -Uz compinit
compinit -D -u
source $COMPLETED_SCRIPT
compadd() {
  local -a words folder
  zparseopts -E p:=folder
  # Calls with -O, -A or -D only ask which words match.
  if [[ " $*" != *" -"[a-zA-Z]#[OAD]" "* ]]; then
    builtin compadd -O words "$@"
    (( ! $#words )) || print -rl -- "<word>$IPREFIX$folder[2]"$^words"</word>"
  fi
  builtin compadd "$@"
}
print_completions() { zle complete-word; print "<done>"; exit; }
zle -N print_completions
bindkey '^T' print_completions
print "<""ready>"
