# Completion of bamtrain and bamdata for fish: shows what `PROGRAM --complete` answers.

function __bamtrain_candidates
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l word (commandline --current-token --cut-at-cursor)
    for line in ($words[1] --complete $words[2..] "$word" 2>/dev/null)
        set -l parts (string split \t -- $line)
        if test "$parts[1]" = :files
            set -l name (string sub --start (math 1 + (string length -- "$parts[2]")) -- "$word")
            for file in (__fish_complete_path "$name")
                echo -- "$parts[2]$file"
            end
        else
            echo -- $line
        end
    end
end

complete --command bamtrain --no-files --arguments '(__bamtrain_candidates)'
complete --command bamdata --no-files --arguments '(__bamtrain_candidates)'
