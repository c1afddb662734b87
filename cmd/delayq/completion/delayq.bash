# Completes delayq in bash. The words up to the cursor go to the program, which says what may stand there.
_delayq() {
    local line candidates=()
    while IFS=$'\t' read -r line _; do
        [[ -n $line ]] && candidates+=("$line")
    done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=("${candidates[@]}")
}
complete -o default -F _delayq delayq
