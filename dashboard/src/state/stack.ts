/** Returns running sums over the series, lowest first. A row in which all series have a gap is a gap. */
export function stack(series: readonly (readonly (number | null)[])[]): (number | null)[][] {
  const rows = series[0]?.length ?? 0;
  const gap = Array.from({ length: rows }, (_, row) => series.every((values) => (values[row] ?? null) === null));
  const sums = new Array<number>(rows).fill(0);
  return series.map((values) =>
    values.map((value, row) => {
      sums[row] = (sums[row] ?? 0) + (value ?? 0);
      return gap[row] ? null : (sums[row] ?? 0);
    }),
  );
}
