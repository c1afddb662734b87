# Completes delayq in fish. The words up to the cursor go to the program, which says what may stand there; files do where it says nothing.
function __delayq_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c delayq -n '__delayq_complete | string length -q' -k -f -a '(__delayq_complete)'
