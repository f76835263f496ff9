# Completion of tilewright for bash: eval "$(tilewright completion bash)"
_tilewright() {
    local line=${COMP_LINE:0:COMP_POINT} word
    local words=("${COMP_WORDS[@]}") current=${COMP_WORDS[COMP_CWORD]}
    # A word that contains = or : is several words to bash: only its last piece is replaced.
    local typed=${line##*[[:space:]]} kept=
    [[ $typed == *[=:]* ]] && kept=${typed%"${typed##*[=:]}"}
    COMPREPLY=()
    while IFS= read -r word; do
        word=${word%%$'\t'*}
        [[ -n $word ]] && COMPREPLY+=("${word#"$kept"}")
    done < <(COLUMNS=9999 _TILEWRIGHT_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
        _TYPER_COMPLETE_ARGS=$line "$1" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _tilewright tilewright
