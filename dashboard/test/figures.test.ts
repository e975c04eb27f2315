import { expect, test } from "vitest";
import type { FiguresKpi, StageKpi } from "../src/api";
import { STAGES_DRAWN_MAX } from "../src/limits";
import { distribution, drawn, millis, summary } from "../src/state/figures";

function stage(name: string, mean_ms: number): StageKpi {
  const latency = { mean_ms, median_ms: mean_ms, min_ms: mean_ms, max_ms: mean_ms, sd_ms: 0, p95_ms: mean_ms, p99_ms: mean_ms };
  return { name, is_communication: false, latency };
}

function figures(means_ms: number[]): FiguresKpi {
  const stages = means_ms.map((ms, i) => stage(`stage${i}`, ms));
  const total = stage("total", means_ms.reduce((sum, ms) => sum + ms, 0)).latency;
  return { topic: "figures/window", of: "objects", count: 600, window: 600, stages, total, total_quantiles_ms: [] };
}

test("the largest stages are drawn, in the order of flow", () => {
  expect(drawn(figures([3, 1, 2]))).toEqual(["stage0", "stage1", "stage2"]);
  const many = Array.from({ length: 11 }, (_, i) => (i === 4 ? 0.1 : 10 - i));
  const names = drawn(figures(many));
  expect(names).toHaveLength(STAGES_DRAWN_MAX);
  expect(names).not.toContain("stage4");
  expect(names).toEqual([...names].sort((a, b) => Number(a.slice(5)) - Number(b.slice(5))));
});

test("the distribution rises from 0 to 1", () => {
  expect(distribution([1, 2, 5])).toEqual([[1, 2, 5], [0, 0.5, 1]]);
  expect(distribution([])).toEqual([[], []]);
});

test("the summary has losses and the offset of the clocks only if there are any", () => {
  expect(summary(figures([43.4, 0.1]))).toBe("total 43.5 ms ± 0.00 ms · p99 43.5 ms · n 600");
  const all = { ...figures([43.4]), loss: { sent: 600, missing: 2, late: 1 }, clock_offset: { offset_ms: -3.214, error_ms: 19 } };
  expect(summary(all)).toContain("2 missing, 1 late of 600 · clock -3.21 ms ±19.0 ms");
});

test("milliseconds have three digits", () => {
  expect([0.123, 12.34, 123.4].map(millis)).toEqual(["0.12 ms", "12.3 ms", "123 ms"]);
});
