// A timer that a browser does not slow down in the background: it runs in a worker.

const WORKER = "let timer;onmessage=({data})=>{clearInterval(timer);timer=setInterval(()=>postMessage(0),data)}";

export function startTicker(period_ms: number, onTick: () => void): void {
  try {
    const url = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    const worker = new Worker(url);
    worker.addEventListener("message", onTick);
    worker.postMessage(period_ms);
  } catch {
    // A content security policy may forbid workers. This timer is slowed down if the page is hidden, and then no command has effect.
    setInterval(onTick, period_ms);
  }
}

/** Rate and longest gap of the ticks in the last second. */
export class TickMeter {
  rate_hz = 0;
  gapMax_ms = 0;
  #since_ms: number;
  #last_ms: number;
  #count = 0;
  #gap_ms = 0;

  constructor(now_ms: number) {
    this.#since_ms = now_ms;
    this.#last_ms = now_ms;
  }

  /** Counts one tick. Returns the time since the last one. */
  tick(now_ms: number): number {
    const elapsed_ms = now_ms - this.#last_ms;
    this.#last_ms = now_ms;
    this.#count += 1;
    this.#gap_ms = Math.max(this.#gap_ms, elapsed_ms);
    if (now_ms - this.#since_ms >= 1_000) this.#finish(now_ms);
    return elapsed_ms;
  }

  #finish(now_ms: number): void {
    this.rate_hz = (this.#count * 1_000) / (now_ms - this.#since_ms);
    this.gapMax_ms = this.#gap_ms;
    this.#since_ms = now_ms;
    this.#count = 0;
    this.#gap_ms = 0;
  }
}
