// What the panel of key figures shows of them. Contains no clock and no page.

import type { FiguresKpi } from "../api";
import { STAGES_DRAWN_MAX } from "../limits";

/** Returns the names of the stages that are drawn, in the order of flow: those with the largest means. */
export function drawn({ stages }: FiguresKpi): string[] {
  const largest = [...stages].sort((a, b) => b.latency.mean_ms - a.latency.mean_ms).slice(0, STAGES_DRAWN_MAX);
  return stages.filter((stage) => largest.includes(stage)).map(({ name }) => name);
}

/** Returns the empirical distribution: latencies, and the share of messages that took at most as long. */
export function distribution(quantiles_ms: readonly number[]): [number[], number[]] {
  const last = quantiles_ms.length - 1;
  return [[...quantiles_ms], quantiles_ms.map((_, i) => (last > 0 ? i / last : 1))];
}

/** Returns milliseconds with three significant digits at most. */
export function millis(ms: number): string {
  const size = Math.abs(ms);
  return `${ms.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0)} ms`;
}

/** Returns the total, the losses and the offset of the clocks in one line. */
export function summary({ total, count, loss, clock_offset }: FiguresKpi): string {
  const parts = total ? [`total ${millis(total.mean_ms)} ± ${millis(total.sd_ms)}`, `p99 ${millis(total.p99_ms)}`] : [];
  parts.push(`n ${count}`);
  if (loss && loss.missing + loss.late > 0) parts.push(`${loss.missing} missing, ${loss.late} late of ${loss.sent}`);
  if (clock_offset) parts.push(`clock ${clock_offset.offset_ms < 0 ? "" : "+"}${millis(clock_offset.offset_ms)} ±${millis(clock_offset.error_ms)}`);
  return parts.join(" · ");
}
