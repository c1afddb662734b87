#compdef delayq
# Completes delayq in zsh. The words up to the cursor go to the program, which says what may stand there.
_delayq() {
    local line
    local -a candidates
    while IFS= read -r line; do
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done < <("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#candidates} )); then
        _describe delayq candidates
    else
        _files
    fi
}
if [[ ${funcstack[1]} == _delayq ]]; then
    _delayq "$@"
elif (( ${+functions[compdef]} )); then
    compdef _delayq delayq
fi
