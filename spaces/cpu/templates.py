"""The templates of CPU kernels, by the names that schedules call them."""

from tilewright.spaces.template_list import TemplateList

TEMPLATES = TemplateList(
    "tilewright.spaces.cpu",
    {
        "contraction": "blocked:BlockedTemplate",
        "thin_stream": "thin:ThinStream",
        "thin_dots": "thin:ThinDots",
        "thin_packed": "thin:ThinPacked",
        "low_bit": "low_bit:LowBit",
        "low_bit_dots": "low_bit_dots:LowBitDots",
        "windows": "windows:WindowsTemplate",
        "winograd": "winograd:WinogradTemplate",
        "rows": "rows:RowsTemplate",
        "scan": "scan:ScanTemplate",
        "kept": "kept:KeptTemplate",
        "map": "maps:MapTemplate",
        "ragged": "ragged:RaggedTemplate",
        "ragged_turned": "ragged:TurnedRagged",
        "recurrent": "recurrent:RecurrentTemplate",
        "stepped": "stepped:SteppedTemplate",
        "chained": "chained:ChainedTemplate",
        "pairwise": "pairwise:PairwiseTemplate",
        "phased": "staged:PhasedTemplate",
        "staged": "staged:StagedTemplate",
        "divided": "staged:DividedTemplate",
        "staged_loops": "staged:StagedLoops",
        "loops": "loops:CpuLoops",
    },
)
