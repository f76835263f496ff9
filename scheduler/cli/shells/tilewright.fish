# Completion of tilewright for fish: tilewright completion fish | source
function __tilewright_complete
    env COLUMNS=9999 _TILEWRIGHT_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
        _TYPER_COMPLETE_ARGS=(commandline -cp | string collect) tilewright 2>/dev/null
end
complete --command tilewright --no-files --arguments "(__tilewright_complete)"
complete --command tilewright --force-files --condition "not count (__tilewright_complete) >/dev/null"
