#!/usr/bin/env python3
"""Creates tables, JSON and plots from the results of bench/compare.sh: report.py DIR."""
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys

# "server": curl, which discards its data; an upper bound for every client.
COLUMNS = ["lookout json", "lookout protobuf", "client-go json", "client-go protobuf", "client-node json",
           "server json", "server protobuf"]


def fields(**labels):
    """Figures that the results contain as they are."""
    return [(label, lambda r, name=name: r[name]) for name, label in labels.items()]


# For each row: the figures to show, and how to get them from the results.
CPU = ("CPU, s", lambda r: r["cpu_user_s"] + r["cpu_system_s"])
[WALL] = fields(wall_s="wall, s")
PEAK = ("VmHWM, MB", lambda r: r["vm_hwm"] / 1e6)
SYNC = [
    CPU,
    *fields(cpu_user_s="CPU, user, s"),
    WALL,
    ("RssAnon, KB an object", lambda r: (r["rss_anon"] - r["rss_anon_before"]) / r["objects"] / 1e3),
    ("  settled, KB an object", lambda r: (r["rss_anon_settled"] - r["rss_anon_before"]) / r["objects"] / 1e3),
    PEAK,
]
EVENTS = fields(events_per_s="events/s", cpu_us_per_event="CPU, us an event", latency_p50_us="latency p50, us",
                latency_p99_us="latency p99, us", latency_max_us="latency max, us")
INFORMERS = [
    WALL,
    CPU,
    *fields(threads="threads"),
    ("RssAnon, MB", lambda r: r["rss_anon"] / 1e6),
    PEAK,
]
CONTROLLER = fields(noop_per_s="reconciles that do nothing/s", noop_cpu_us="  CPU, us each",
                    noop_coroutine_cpu_us="  as coroutines, CPU, us each", patch_per_s="reconciles with a patch/s",
                    patch_cpu_us="  CPU, us each", latency_p50_ms="change to reconcile p50, ms",
                    latency_p99_ms="change to reconcile p99, ms", cache_bytes_per_object="cache, bytes an object") + [PEAK]
STORE = fields(**{name: name.replace("_", " ") for name in (
    "update_ns", "get_ns", "snapshot_ns", "list_all_us", "list_by_selector_us", "list_by_index_us",
    "update_beside_list_p50_ns", "update_beside_list_p99_ns", "update_beside_list_p999_ns", "object_bytes",
    "store_bytes")})


def figures_of(row):
    if row.startswith("events"):
        return EVENTS
    if row.startswith("informers"):
        return INFORMERS
    if row.startswith("controller"):
        return CONTROLLER
    if row.startswith("store"):
        return STORE
    return SYNC


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = int(re.search(r"MemTotal:\s+(\d+)", open("/proc/meminfo").read())[1]) // 1000000
    return f"{os.cpu_count()} processors ({model}), {memory} GB, Linux {platform.release().split('-')[0]}"


def measured(figure, result):
    """A figure, or None if this client does not report it."""
    try:
        return figure(result)
    except KeyError:
        return None


def show(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def main(directory):
    lines = []

    def say(line=""):
        print(line)
        lines.append(line)

    runs = {}
    for line in open(f"{directory}/results.jsonl"):
        run = json.loads(line)
        runs.setdefault(run["row"], {}).setdefault(run["column"], []).append(run["result"])

    out = {"machine": machine(), "rows": {}}
    say("# Results of bench/compare.sh\n")
    say(f"{out['machine']}; load average at the end {os.getloadavg()[0]:.1f}.")
    say(f"Compared with: {', '.join(peers(runs))}.")
    say("Each figure: median (spread: half of the range, in % of it).\n")
    for row, columns in runs.items():
        there = [c for c in COLUMNS if c in columns]
        ours = there[0]
        say(f"### {row} ({max(len(r) for r in columns.values())} runs)\n")
        say("| " + " | ".join([""] + there + [f"{ours} / {c}" for c in there[1:]]) + " |")
        say("|---" * (2 * len(there)) + "|")
        out["rows"][row] = {}
        for name, figure in figures_of(row):
            cells, medians = [], {}
            for column in there:
                values = [v for v in (measured(figure, r) for r in columns[column]) if v is not None]
                if not values:
                    cells.append("")
                    continue
                median = statistics.median(values)
                spread = (max(values) - min(values)) / 2 / median * 100 if median else 0
                medians[column] = median
                cells.append(f"{show(median)} ({spread:.0f} %)")
                out["rows"][row].setdefault(name.strip(), {})[column] = {"median": median, "spread_percent": spread,
                                                                          "runs": len(values)}
            ratios = [f"{medians[ours] / medians[c]:.2f}" if medians.get(c) else "" for c in there[1:]]
            say(f"| {name} | " + " | ".join(cells + ratios) + " |")
        say()
    with open(f"{directory}/results.json", "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")
    with open(f"{directory}/results.md", "w") as file:
        file.write("\n".join(lines).rstrip() + "\n")
    plot(directory, out["rows"])


def peers(runs):
    """The versions that the peers report."""
    found = set()
    for columns in runs.values():
        for results in columns.values():
            for result in results:
                version = result.get("version") or result.get("go") or result.get("node")
                if version:
                    found.add(f"{result['client']} ({version})")
    return sorted(found) or ["nobody"]


def plot(directory, rows):
    if shutil.which("gnuplot") is None:
        print("*** No gnuplot here (Debian: gnuplot-nox): no plots. ***", file=sys.stderr)
        return
    growth = sorted((int(row.split("-")[1]), row) for row in rows if row.startswith("growth-"))
    style = "set terminal svg size 720,400 font 'sans,12' background 'white'\nset grid ytics lc '#dddddd'\n"
    if growth:
        for name, key, label, scale in (
                ("growth-memory", "settled, KB an object", "KB of memory an object (pods of 1 KB)", 0),
                ("growth-time", "CPU, s", "microseconds of CPU an object, initial sync", 1)):
            data, plots = "", []
            for column in COLUMNS:
                points = [(n, rows[row][key][column]["median"] * (1e6 / n if scale else 1))
                          for n, row in growth if column in rows[row][key]]
                if not points:
                    continue
                block = "$" + re.sub(r"\W", "_", column)
                data += block + " << EOD\n" + "\n".join(f"{n} {v}" for n, v in points) + "\nEOD\n"
                plots.append(f"{block} using 1:2 with linespoints lw 2 pt 7 ps 0.6 title '{column}'")
            gnuplot(f"{style}set output '{directory}/{name}.svg'\nset logscale x\nset xlabel 'objects'\n"
                    f"set ylabel '{label}'\nset yrange [0:*]\nset key left top\n{data}plot {', '.join(plots)}\n")
    bars = (("sync-cpu", "sync-", "CPU, s", "seconds of CPU for the initial sync"),
            ("sync-memory", "sync-", "RssAnon, KB an object", "KB of memory an object after the sync"),
            ("events-cpu", "events-", "CPU, us an event", "microseconds of CPU an event"))
    for name, prefix, key, label in bars:
        chosen = [row for row in rows if row.startswith(prefix) and not row.endswith("-alone") and key in rows[row]]
        there = [c for c in COLUMNS if any(c in rows[row][key] for row in chosen)]
        if not chosen:
            continue
        lines = ["\t".join(["row"] + there)]
        for row in chosen:
            values = [str(rows[row][key][c]["median"]) if c in rows[row][key] else "NaN" for c in there]
            lines.append("\t".join([row.removeprefix(prefix)] + values))
        gnuplot(f"{style}set output '{directory}/{name}.svg'\nset ylabel '{label}'\nset yrange [0:*]\n"
                "set style data histogram\nset style histogram clustered gap 1\nset style fill solid 0.8 noborder\n"
                "set key outside top center horizontal\nset xtics rotate by -20\nset datafile separator '\\t'\n"
                "$data << EOD\n" + "\n".join(lines) + f"\nEOD\nplot for [i=2:{len(there) + 1}] $data "
                "using i:xtic(1) title columnheader(i)\n")


def gnuplot(script):
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


main(sys.argv[1])
