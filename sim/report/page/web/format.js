// Numbers as the text output writes them (sim/report/format.cpp).

/** `digits` significant digits, without exponent for ordinary magnitudes. */
function number(value, digits = 4) {
  if (value === 0 || !isFinite(value)) return String(value);
  const magnitude = Number(value.toExponential(digits - 1).split("e")[1]);
  return value.toFixed(Math.min(12, Math.max(0, digits - 1 - magnitude)));
}

/** "27.3 %" from 0.273; small shares keep two significant digits. */
function percent(share) {
  const value = 100 * share;
  // What is left of sums that should be nothing is no number.
  const text = Math.abs(value) < 0.95 && Math.abs(value) > 1e-6 ? number(value, 2) : value.toFixed(1);
  return text.replace("-", "−") + "\u00a0%";
}

/** "+2.1 %", "−0.4 %"; "0.0 %" for what is no change. */
function change(share) {
  if (Math.abs(share) < 5e-4) return "0.0\u00a0%";
  return (share > 0 ? "+" : "") + percent(share);
}

function duration(seconds) {
  const size = Math.abs(seconds);
  if (size >= 1 || size === 0) return number(seconds) + "\u00a0s";
  if (size >= 1e-3) return number(seconds * 1e3) + "\u00a0ms";
  return number(seconds * 1e6) + "\u00a0µs";
}

/** "33.5 days", "76.9 min": times that people wait for. Up to twice a unit the next smaller one tells more. */
function longDuration(seconds) {
  const [size, unit] = [[86400, "days"], [3600, "h"], [60, "min"]].find(([each]) => Math.abs(seconds) >= 2 * each) || [1, "s"];
  const value = seconds / size;
  return value.toFixed(Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0) + "\u00a0" + unit;
}

function gib(bytes) {
  const value = bytes / 2 ** 30;
  if (Math.abs(value) < 0.1) return number(bytes / 2 ** 20, 3) + "\u00a0MiB";
  return value.toFixed(Math.abs(value) < 10 ? 2 : 1) + "\u00a0GiB";
}

function count(value) {
  for (const [size, suffix] of [[1e12, "T"], [1e9, "B"], [1e6, "M"]])
    if (value >= size) return number(value / size) + "\u00a0" + suffix;
  return value.toFixed(0);
}

/** A whole number with thousands set apart. */
function whole(value) {
  return value.toLocaleString("en", {maximumFractionDigits: 0}).replace(/,/g, "\u202f");
}

/** "tensor_communication" as "tensor communication". */
function words(name) {
  return name.replace(/_/g, " ");
}
