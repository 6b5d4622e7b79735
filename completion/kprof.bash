# bash completion for kprof: kprof itself says how a line may go on.
_kprof()
{
    local line=${COMP_LINE:0:COMP_POINT} cur known='' breaks='' answer word i
    local -a words
    COMPREPLY=()
    # shellcheck disable=SC2162 # a backslash quotes a blank, as on the line
    read -a words <<<"$line"
    [[ $line == *[[:blank:]] ]] && words+=('')
    cur=${words[-1]}

    # bash itself ends words at these, and replaces only what follows them.
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=':'
    [[ -n $breaks && $cur == *["$breaks"]* ]] && known=${cur%"${cur##*["$breaks"]}"}

    while IFS= read -r answer; do
        case $answer in
            ':files .'*)
                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY \
                    < <(compgen -f -X "!*${answer#:files }" -- "${cur#"$known"}"; compgen -d -- "${cur#"$known"}") ;;
            :files) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "${cur#"$known"}") ;;
            :folders) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "${cur#"$known"}") ;;
            :programs)
                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$cur")
                [[ $cur == */* ]] && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur") ;;
            ':application '*)
                i=${answer#:application }
                word=${words[i]}
                while ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} != "$word" ]]; do
                    ((i++))
                done
                if declare -F _command_offset >/dev/null; then
                    _command_offset "$i"
                else
                    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                fi ;;
            *)
                word=${answer%%$'\t'*}
                [[ $word == *: ]] && compopt -o nospace 2>/dev/null
                COMPREPLY+=("${word#"$known"}") ;;
        esac
    done < <("${words[0]/#\~\//$HOME/}" --complete line -- "${words[@]:1}" 2>/dev/null)
}
complete -o filenames -F _kprof kprof
