# SPDX-License-Identifier: Apache-2.0
"""Reads a Chrome trace and checks it by the rules of the Trace Event Format ("Trace Event Format", Google, 2016) that
its readers rely on, for the kinds of events that trainsim writes.

Times are integers in nanoseconds.
"""
import collections
import decimal
import json

METADATA = {"process_name": "name", "process_sort_index": "sort_index", "thread_name": "name",
            "thread_sort_index": "sort_index"}
# Fields that an event of each phase must have; and those that it may have.
FIELDS = {
    "X": ({"ph", "pid", "tid", "name", "cat", "ts", "dur"}, {"args"}),
    "M": ({"ph", "pid", "tid", "name", "args"}, set()),
    "s": ({"ph", "pid", "tid", "name", "cat", "id", "ts"}, set()),
    "f": ({"ph", "pid", "tid", "name", "cat", "id", "ts", "bp"}, set()),
    "C": ({"ph", "pid", "tid", "name", "ts", "args"}, set()),
}


def parse(text):
    """The trace; times are still decimal microseconds."""
    def pairs(items):
        if len({key for key, _ in items}) != len(items):
            raise ValueError(f"duplicate keys in {items}")
        return dict(items)
    return json.loads(text, parse_float=decimal.Decimal, object_pairs_hook=pairs)


def nanoseconds(microseconds):
    return int(microseconds * 1000)


def is_time(value):
    return isinstance(value, (int, decimal.Decimal)) and value >= 0 and value * 1000 == int(value * 1000)


def field_problems(event):
    if not isinstance(event, dict) or event.get("ph") not in FIELDS:
        yield f"not an event of a known phase: {event}"
        return
    required, optional = FIELDS[event["ph"]]
    if not required <= set(event) <= required | optional:
        yield f"fields {sorted(event)} instead of {sorted(required)}"
        return
    for key in ("pid", "tid"):
        if not isinstance(event[key], int):
            yield f"{key} is no integer: {event}"
    for key in {"name", "cat"} & set(event):
        if not isinstance(event[key], str) or not event[key]:
            yield f"{key} is no text: {event}"
    for key in {"ts", "dur"} & set(event):
        if not is_time(event[key]):
            yield f"{key} is no time in whole nanoseconds from 0 on: {event}"
    if not isinstance(event.get("args", {}), dict):
        yield f"args is no object: {event}"
    if event["ph"] == "M" and list(event["args"]) != [METADATA.get(event["name"])]:
        yield f"unknown metadata: {event}"
    if event["ph"] == "f" and event["bp"] != "e":
        yield f"an arrow must end in the event around it: {event}"
    if event["ph"] == "C" and not all(isinstance(value, int) for value in event["args"].values()):
        yield f"a counter must count: {event}"


def by_row(events, phase):
    rows = collections.defaultdict(list)
    for event in events:
        if event["ph"] == phase:
            rows[event["pid"], event["tid"]].append(event)
    return rows


def nesting_problems(events):
    """Complete events of a thread must nest or be disjoint, and come in the order of time."""
    for row, complete in by_row(events, "X").items():
        spans = [(nanoseconds(event["ts"]), nanoseconds(event["ts"]) + nanoseconds(event["dur"])) for event in complete]
        if any(later[0] < earlier[0] for earlier, later in zip(spans, spans[1:])):
            yield f"row {row} is not in the order of time"
        open_ends = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            if open_ends and end > open_ends[-1]:
                yield f"row {row}: an event from {begin} to {end} sticks out of the one around it"
            open_ends.append(end)


def name_problems(events):
    counts = collections.Counter()
    for event in events:
        if event["ph"] == "M":
            counts[event["name"], event["pid"], event["tid"] if event["name"].startswith("thread") else None] += 1
    for name, count in counts.items():
        if count != 1:
            yield f"{name} is given {count} times"
    for pid, tid in by_row(events, "X"):
        for name, row in (("thread_name", tid), ("thread_sort_index", tid), ("process_name", None),
                          ("process_sort_index", None)):
            if (name, pid, row) not in counts:
                yield f"process {pid}, thread {tid} has no {name}"
    for pid, _ in by_row(events, "C"):
        if ("process_name", pid, None) not in counts:
            yield f"the process {pid} of a counter has no name"


def flow_problems(events):
    begins = {(event["pid"], event["tid"], nanoseconds(event["ts"])) for event in events if event["ph"] == "X"}
    ends = {"s": {}, "f": {}}
    for event in events:
        if event["ph"] not in ends:
            continue
        if event["id"] in ends[event["ph"]]:
            yield f"two arrows with the number {event['id']}"
        ends[event["ph"]][event["id"]] = event
        if (event["pid"], event["tid"], nanoseconds(event["ts"])) not in begins:
            yield f"no event begins where an arrow does or ends: {event}"
    for number in ends["s"].keys() ^ ends["f"].keys():
        yield f"arrow {number} has one end only"
    for number in ends["s"].keys() & ends["f"].keys():
        start, finish = ends["s"][number], ends["f"][number]
        if finish["ts"] < start["ts"]:
            yield f"arrow {number} points backwards in time"
        if (start["name"], start["cat"]) != (finish["name"], finish["cat"]):
            yield f"the ends of arrow {number} have different names"


def counter_problems(events):
    for row, counters in by_row(events, "C").items():
        if any(later["ts"] < earlier["ts"] for earlier, later in zip(counters, counters[1:])):
            yield f"the counter of row {row} goes back in time"


def problems(trace):
    """Everything that breaks the rules, as texts."""
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["not an object with a list of traceEvents"]
    found = []
    if trace.get("displayTimeUnit") not in ("ms", "ns"):
        found.append("displayTimeUnit must be ms or ns")
    if not isinstance(trace.get("otherData"), dict):
        found.append("otherData must be an object")
    events = trace["traceEvents"]
    for event in events:
        found.extend(field_problems(event))
    if not found:
        for check in (nesting_problems, name_problems, flow_problems, counter_problems):
            found.extend(check(events))
    return found
