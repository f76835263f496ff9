"""Bugs to plant in chained kernels by mma.sync, and cases that show them."""

from __future__ import annotations

from tests.measure.cuda.kernels.chained.chained_cases import HELD, LATER, PLAIN, SPLIT, case
from tests.spaces.chained_programs import form

BROKEN = {
    "causal": case(form("causal", "float16"), PLAIN),
    "many": case(form("grouped heads", "float16"), PLAIN),
    "parts": case(form("log of the sum", "float16"), SPLIT),
    "late": case(form("log of the sum", "float16"), LATER),
    "early": case(form("log of the sum", "float16"), {**LATER, "merge": "early"}),
    "slopes": case(form("alibi", "float16"), HELD),
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "tanh far from zero by the polynomial": (
        "softcap that is reached",
        r"if \(tw::any_lane\(!\(largest.*\{",
        "if (0) {",
    ),
    "tanh of twice the argument": (
        "softcap that is reached",
        r"(tw_tanh_by_power\(x\d+) \*",
        r"\1 * 2.0f *",
    ),
    "all keys of a tile are at its first": ("slopes", r"\(float\)\(at", "(float)(0 * at"),
    "the correction is inverted": ("many", r"\((c\d\[h\]) - (o\d\[h\])\)", r"(\2 - \1)"),
    "sums are not corrected": ("many", r"sums0\[f\]\[j\]\[e\] \*= factor0\[e / 2\];", ";"),
    "the factor of the other row": ("many", r"\*= factor0\[e / 2\]", "*= factor0[1 - e / 2]"),
    "the total is not corrected": ("many", r"state1\[r\], factor0\[h\]", "state1[r], 1.0f"),
    "lanes do not join their greatest": (
        "many",
        r"part0\[h\] = tw::max_nan\(part0\[h\], tw::shuffle_xor\(part0\[h\], 2\)\);",
        "",
    ),
    "lanes do not join their totals": (
        "many",
        r"state1\[r\] = state1\[r\] \+ tw::shuffle_xor\(state1\[r\], 1\);",
        "",
    ),
    "one key too many": ("causal", r"to\[h\] = high\[r\] - first", "to[h] = high[r] - first + 1"),
    "a tile half inside is taken for whole": (
        "causal",
        r"tile \+ 16 <= whole_last",
        "tile <= whole_last",
    ),
    "the last tile is not visited": (
        "many",
        r"tile < last_key; tile \+= 16",
        "tile + 16 < last_key; tile += 16",
    ),
    "a warp skips its last tile": ("causal", r"tile < own_last &&", "tile + 16 < own_last &&"),
    "a stage is read before it is full": (
        "many",
        r"tw::cp_async_wait<0>\(\);\n    tw::sync_block\(\);",
        "tw::sync_block();",
    ),
    "a stage is filled while it is read": ("many", r"\(step \+ 1\) % 2", "step % 2"),
    "keys beyond the last count": ("many", r"to\[h\] = high\[r\]", "to[h] = 16 + high[r]"),
    "values of another head": ("many", r"(buffer2 \+ \([^;]*?)b1", r"\1(1 - b1)"),
    "weights of the other half": (
        "many",
        r"weights0\[k\]\[f\]\[i\] = ",
        "weights0[k][f][3 - i] = ",
    ),
    "a part is not corrected": ("parts", r"two0\[(\d)\], factor0", r"two0[\1], 1.0f"),
    "parts are merged before they are there": ("early", r"tw::await_launches\(\);", ""),
    "the sums of another group": ("late", r" \+ group \+", " + 0 +"),
    "a part is left where another is": ("late", r"parts \+ part \* ", "parts + 0 * "),
    "float8 keys change places": ("keys in float8", r"to_float\(raw0\[v\]", "to_float(raw0[v ^ 1]"),
    "float8 keys of the piece before": (
        "keys in float8",
        r"tw_least\((0 \+ .*), 16\);",
        r"tw_least(\1, 8);",
    ),
    "a team has the keys of the first": (
        "grouped heads in teams",
        r"begin_key \+= team \* share",
        "begin_key += 0 * share",
    ),
    "rows are read before all teams have loaded them": (
        "grouped heads in teams",
        r"tw::cp_async_wait<2>\(\);\n +tw::sync_block\(\);",
        "",
    ),
    "a team leaves its part while others read keys there": (
        "grouped heads in teams",
        r"tw::sync_block\(\);(\n +\{\n +const u32 parts)",
        r"\1",
    ),
    "a team stores the columns of the first": (
        "grouped heads in teams",
        r"column0 = block_column \+ team \* 8",
        "column0 = block_column + 0 * 8",
    ),
    "a team's sums are not corrected": (
        "causal in teams",
        r"(two0\[\d\]), factor0",
        r"\1, 1.0f",
    ),
    "the teams of a block send to one place": (
        "causal in clusters",
        r"\+ \(part \* 2 \+ team\) \* (\d+) \+ thread",
        r"+ (part * 2) * \1 + thread",
    ),
    "a part goes to another block of the cluster": (
        "causal in clusters",
        r"(to\[q\] = tw::map_shared\(.*), q % 4\);",
        r"\1, (q % 4) ^ 1);",
    ),
    "a part is sent to a block that still reads keys": (
        "causal in clusters",
        r"tw::cluster_arrive_relaxed\(\);([\s\S]*)tw::cluster_wait\(\);",
        r"\1",
    ),
    "parts of a cluster are read before all have come": (
        "log of the sum in clusters",
        r"tw::mbarrier_wait_cluster\(.*\);",
        "",
    ),
    "bytes of fewer parts are waited for": (
        "log of the sum in clusters",
        r"(tw::mbarrier_arrive_expect\(.*), 2 \*",
        r"\1, 1 *",
    ),
    "bytes of rows beyond the last are waited for": (
        "causal in clusters",
        r"sent_rows = tw_least\(.*\);",
        "sent_rows = 16;",
    ),
    "both teams of a block receive in one place": (
        "two weights in clusters",
        r"\(shared \+ team \* \d+\)",
        "(shared)",
    ),
    "columns of another receiver": (
        "causal in clusters",
        r"\+ q \* 1 \+ n\)",
        "+ (q ^ 1) * 1 + n)",
    ),
    "who stores no row merges what nobody sent": (
        "loss over a vocabulary in clusters",
        r"if \(sharer < 1\)",
        "if (true)",
    ),
    "a block stores the columns of the first of its cluster": (
        "causal in clusters",
        r"column0 = block_column \+ sharer \* 8",
        "column0 = block_column + 0 * 8",
    ),
    "warps of a team do not meet": (
        "causal in teams",
        r"tw::sync_named\(1 \+ team, 64\);",
        "",
    ),
    "a part is left out": ("parts", r"for \(int part = 0; part < 3", "for (int part = 1; part < 3"),
    "parts are merged by whoever comes": (
        "parts",
        r"if \(!is_last\) return;",
        "",
    ),
    "tickets are not given back": (
        "parts",
        r"if \(threadIdx.x == 0\) tw::store_global\(ticket, 0u\);",
        "",
    ),
    "keys between two parts are left out": (
        "parts",
        r"begin_key \+= part \* share",
        "begin_key += part * (share + 16)",
    ),
    "rows beyond the last are written": (
        "many",
        r"tw_least\(own, 89\)((?:.*\n)*.*lane / 4) < 90\)",
        r"own\1 < 200)",
    ),
}
