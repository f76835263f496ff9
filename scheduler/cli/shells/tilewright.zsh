#compdef tilewright
# Completion of tilewright for zsh: eval "$(tilewright completion zsh)"
_tilewright() {
    local -a found open closed
    found=("${(@f)$(COLUMNS=9999 _TILEWRIGHT_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
        _TYPER_COMPLETE_ARGS="${words[1,CURRENT]}" "${words[1]}" 2>/dev/null)}")
    found=("${(@)found%%$'\t'*}")
    open=("${(@M)found:#*=}")
    closed=("${(@)found:#*=}")
    closed=("${(@)closed:#}")
    (( ${#open} )) && compadd -S '' -- "${open[@]}"
    (( ${#closed} )) && compadd -- "${closed[@]}"
    (( ${#open} + ${#closed} )) || _files
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u }
compdef _tilewright tilewright
