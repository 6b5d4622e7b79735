# bash completion for kprof; the words come from kprof itself.
_kprof()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} kprof=${COMP_WORDS[0]}
    local word command='' application='' skip=0 i values prefix=''
    COMPREPLY=()

    # "--option=value" arrives as three words.
    if [[ $cur == '=' ]]; then
        cur=''
    elif [[ $prev == '=' ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi

    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((skip)); then
            skip=0
        elif [[ $word == -- ]]; then
            application=${COMP_WORDS[i + 1]-}
            [[ $((i + 1)) -lt $COMP_CWORD ]] || application=''
            break
        elif [[ $word == -* ]]; then
            "$kprof" --complete arguments 2>/dev/null | grep -qxF -- "$word" && skip=1
        elif [[ $word != '=' && -z $command ]]; then
            if "$kprof" --complete commands 2>/dev/null | grep -qxF -- "$word"; then
                command=$word
            else
                application=$word
                break
            fi
        fi
    done
    if [[ -n $application ]]; then
        declare -F _command_offset >/dev/null && _command_offset "$i"
        return
    fi

    if "$kprof" --complete arguments 2>/dev/null | grep -qxF -- "$prev"; then
        values=$("$kprof" --complete "$prev" 2>/dev/null)
        if [[ -n $values ]]; then
            [[ $cur == *,* ]] && prefix=${cur%,*},
            COMPREPLY=($(compgen -P "$prefix" -W "$values" -- "${cur##*,}"))
        else
            COMPREPLY=($(compgen -f -- "$cur"))
        fi
    elif [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$("$kprof" $command --complete options 2>/dev/null)" -- "$cur"))
    elif [[ $command == help ]]; then
        COMPREPLY=($(compgen -W "$("$kprof" --complete commands 2>/dev/null)" -- "$cur"))
    elif [[ -n $command ]]; then
        COMPREPLY=($(compgen -f -X '!*.kprof' -- "$cur") $(compgen -d -- "$cur"))
    else
        COMPREPLY=($(compgen -W "$("$kprof" --complete commands 2>/dev/null)" -- "$cur") $(compgen -c -- "$cur"))
    fi
}
complete -o filenames -F _kprof kprof
