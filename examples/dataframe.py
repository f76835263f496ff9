"""Study measurements as a pandas DataFrame.

Needs the extra ``data``. There is a row for each attempt, and a typed column for each decision of
each template, ``template.decision``. ``attrs["columns"]`` says what a column means.
"""

import os

from tilewright import trials, tune

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "48"))

tune("matmul m=64 n=96 k=64", "cpu", "tuning.db", trials=TRIALS, seconds=60, search="random")
table = trials("tuning.db")
print(table["status"].value_counts().to_string())

# After the search the fastest few are measured again, in other rounds.
searched = table[(table["round"] == "search") & (table["status"] == "ok")]
right = searched.sort_values("latency_s")
right["latency_us"] = (right["latency_s"] * 1e6).round(2)
template = right["template"].iloc[0]
decisions = [
    name for name in right if name.startswith(f"{template}.") and right[name].nunique() > 1
]
print("\nthe five fastest:")
print(right[["latency_us", *decisions[:4]]].head().to_string(index=False))

print("\nhow fast the fastest kernel is with each value of a decision, in us:")
for name in decisions:
    fastest = right.groupby(name)["latency_us"].min()
    print(f"{name:28}", ", ".join(f"{value}: {latency}" for value, latency in fastest.items()))

meaning = table.attrs["columns"]["latency_s"]
print(f"\nlatency_s, in {meaning['unit']}: {meaning['meaning']}")
