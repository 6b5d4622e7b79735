# fish completion for kprof: kprof itself says how a line may go on.
function __kprof_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l option (string match -r -- '^--[^=]*=' "$current")
    set -l value (string replace -r -- '^--[^=]*=' '' "$current")
    for answer in ($words[1] --complete line -- $words[2..-1] "$current" 2>/dev/null)
        switch $answer
            case ':files .*'
                set -l ending (string replace ':files ' '' -- $answer)
                for file in "$value"*$ending "$value"*/
                    echo "$option$file"
                end
            case ':files'
                for file in (__fish_complete_path "$value")
                    echo "$option$file"
                end
            case ':folders'
                for file in (__fish_complete_directories "$value" '')
                    echo "$option$file"
                end
            case ':programs'
                __fish_complete_command
                __fish_complete_path "$current"
            case ':application *'
                set -l first (math (string replace ':application ' '' -- $answer) + 1)
                complete -C (string join ' ' -- (string escape -- $words[$first..-1]))" $current"
            case '*'
                echo $answer
        end
    end
end
complete -c kprof -f -a '(__kprof_complete)'
