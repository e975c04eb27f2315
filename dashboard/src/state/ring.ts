// A history of named series over one time axis, in fixed memory. Contains no clock: the caller passes times.

export class History {
  readonly #capacity: number;
  readonly #seriesMax: number;
  readonly #times: Float64Array;
  readonly #series = new Map<string, Float64Array>();
  #head = 0;
  #length = 0;

  constructor(capacity: number, seriesMax: number) {
    this.#capacity = capacity;
    this.#seriesMax = seriesMax;
    this.#times = new Float64Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  get names(): string[] {
    return [...this.#series.keys()];
  }

  /** Appends one row; a series without a finite value in it gets a gap. A row that is not newer than the last one is ignored. */
  push(time: number, row: Readonly<Record<string, number | undefined>>): void {
    if (this.#length > 0 && time <= this.#timeAt(this.#length - 1)) return;
    for (const name of Object.keys(row)) this.#open(name);
    this.#times[this.#head] = time;
    for (const [name, values] of this.#series) {
      const value = row[name];
      values[this.#head] = value !== undefined && Number.isFinite(value) ? value : NaN;
    }
    this.#head = (this.#head + 1) % this.#capacity;
    this.#length = Math.min(this.#length + 1, this.#capacity);
    this.#forgetSilent();
  }

  times(): number[] {
    return Array.from({ length: this.#length }, (_, i) => this.#timeAt(i));
  }

  /** Returns the values, oldest first; a gap is null. */
  values(name: string): (number | null)[] {
    const values = this.#series.get(name);
    return Array.from({ length: this.#length }, (_, i) => {
      const value = values?.[this.#index(i)];
      return value === undefined || Number.isNaN(value) ? null : value;
    });
  }

  /** Returns the newest value, or `undefined` if it is a gap. */
  last(name: string): number | undefined {
    const value = this.#length > 0 ? this.#series.get(name)?.[this.#index(this.#length - 1)] : undefined;
    return value === undefined || Number.isNaN(value) ? undefined : value;
  }

  #open(name: string): void {
    if (this.#series.has(name) || this.#series.size >= this.#seriesMax) return;
    this.#series.set(name, new Float64Array(this.#capacity).fill(NaN));
  }

  /** Removes series without any value; runs once per turn of the ring. */
  #forgetSilent(): void {
    if (this.#head !== 0) return;
    for (const [name, values] of this.#series) {
      if (values.every(Number.isNaN)) this.#series.delete(name);
    }
  }

  #index(i: number): number {
    return (this.#head - this.#length + i + this.#capacity) % this.#capacity;
  }

  #timeAt(i: number): number {
    return this.#times[this.#index(i)] ?? NaN;
  }
}
