// One camera: decodes frames and draws the newest one. At most one frame is being decoded, one waits, and one is ready to be drawn.

import type { DeskClock } from "../net/clock";
import { nowPage_us } from "../net/connection";
import type { Frame } from "../protocol/frame";
import { MARK_ROWS, markCell_px, type Mark, readMark, unwrapTime_us } from "../protocol/mark";
import type { CameraReport } from "../protocol/messages";
import { fingerprint, type Shown } from "./freshness";
import { Gate } from "./gate";
import { GlassLatency } from "./latency";

interface Ready {
  frame: Frame;
  bitmap: ImageBitmap;
  hash: number;
}

export class Camera {
  readonly index: number;
  readonly glass = new GlassLatency();
  /** Frames received from the desk. */
  received = 0;
  /** Frames drawn. */
  drawn = 0;
  /** Frames not drawn because a newer one was ready first. */
  skipped = 0;
  /** Frames not drawn because their deadline had passed. */
  late = 0;
  decodeErrors = 0;
  marksRead = 0;
  /** Frames whose mark was expected and could not be read, or names another frame or camera. */
  marksFailed = 0;
  /** Frames that missed their deadline before the desk, as the desk counts them. */
  missed = 0;
  /** The frame on the screen. */
  frame: Frame | undefined;
  shown: Shown | undefined;
  /** Offset of the vehicle's clock, which stamps the marks, from the desk's clock; `undefined`: unknown. */
  vehicleOffset_us: number | undefined;
  readonly #gate = new Gate();
  readonly #clock: DeskClock;
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #strip = new OffscreenCanvas(1, 1);
  readonly #stripContext: OffscreenCanvasRenderingContext2D;
  #decoding = false;
  #waiting: Frame | undefined;
  #ready: Ready | undefined;
  #hash: number | undefined;

  constructor(index: number, canvas: HTMLCanvasElement, clock: DeskClock) {
    const context = canvas.getContext("2d", { alpha: false });
    const stripContext = this.#strip.getContext("2d", { alpha: false, willReadFrequently: true });
    if (!context || !stripContext) throw new Error("this browser has no 2D canvas");
    this.index = index;
    this.#canvas = canvas;
    this.#context = context;
    this.#stripContext = stripContext;
    this.#clock = clock;
  }

  take(frame: Frame): void {
    this.received += 1;
    this.missed = frame.missed;
    if (this.#gate.offer(frame, performance.now()) === "older") return;
    if (!this.#decoding) return void this.#decode(frame);
    if (this.#waiting) this.skipped += 1;
    this.#waiting = frame;
  }

  /** Draws the newest decoded frame, unless its deadline has passed. Returns `true` if it drew one. */
  draw(): boolean {
    const ready = this.#ready;
    if (!ready) return false;
    this.#ready = undefined;
    const onTime = !this.#isLate(ready.frame);
    if (onTime) this.#show(ready);
    else this.late += 1;
    ready.bitmap.close();
    return onTime;
  }

  get older(): number {
    return this.#gate.older;
  }

  counts(frozen: boolean): Omit<CameraReport, "glass_us"> {
    return {
      camera: this.index,
      frame: this.frame?.number ?? null,
      received: this.received,
      shown: this.drawn,
      skipped: this.skipped,
      late: this.late,
      older: this.older,
      decode_errors: this.decodeErrors,
      marks_read: this.marksRead,
      marks_failed: this.marksFailed,
      frozen,
    };
  }

  /** Returns the counts, and the latencies since the last report. */
  report(frozen: boolean): CameraReport {
    return { ...this.counts(frozen), glass_us: this.glass.takeUnreported() };
  }

  async #decode(frame: Frame): Promise<void> {
    this.#decoding = true;
    try {
      const bitmap = await createImageBitmap(new Blob([frame.picture], { type: "image/jpeg" }));
      if (this.#ready) {
        this.skipped += 1;
        this.#ready.bitmap.close();
      }
      this.#ready = { frame, bitmap, hash: fingerprint(frame.picture) };
    } catch {
      this.decodeErrors += 1;
    }
    this.#decoding = false;
    const next = this.#waiting;
    this.#waiting = undefined;
    if (next) void this.#decode(next);
  }

  #isLate(frame: Frame): boolean {
    const desk_us = this.#clock.at(nowPage_us());
    return desk_us !== undefined && frame.deadline_us !== undefined && desk_us > frame.deadline_us;
  }

  #show({ frame, bitmap, hash }: Ready): void {
    // The mark is for machines: the driver sees the picture below it.
    const top = frame.flags.mark ? markHeight_px(bitmap) : 0;
    const [width, height] = [bitmap.width, bitmap.height - top];
    if (this.#canvas.width !== width || this.#canvas.height !== height) Object.assign(this.#canvas, { width, height });
    this.#context.drawImage(bitmap, 0, -top);
    const now_ms = performance.now();
    const same = hash === this.#hash && this.shown !== undefined;
    this.#hash = hash;
    this.shown = { shown_ms: now_ms, capture_us: frame.capture_us, same_since_ms: same ? (this.shown as Shown).same_since_ms : now_ms };
    this.frame = frame;
    this.drawn += 1;
    this.#measure(frame, this.#readMark(frame, bitmap));
  }

  /** Reads the mark from the decoded picture. `undefined`: there is none that belongs to this frame. */
  #readMark(frame: Frame, bitmap: ImageBitmap): Mark | undefined {
    if (!frame.flags.mark) return undefined;
    const height = markHeight_px(bitmap);
    const mark = height === 0 ? "absent" : readMark(this.#topRows(bitmap, height));
    if (typeof mark !== "string" && mark.frame === frame.number && mark.camera === frame.camera) {
      this.marksRead += 1;
      return mark;
    }
    this.marksFailed += 1;
    return undefined;
  }

  #topRows(bitmap: ImageBitmap, height: number): ImageData {
    const { width } = bitmap;
    if (this.#strip.width !== width || this.#strip.height !== height) Object.assign(this.#strip, { width, height });
    this.#stripContext.drawImage(bitmap, 0, 0, width, height, 0, 0, width, height);
    return this.#stripContext.getImageData(0, 0, width, height);
  }

  /**
   * Adds the latency from capture to now. The capture time is the mark's; a picture without a mark has that of the header. A picture
   * whose mark was expected and is missing adds nothing.
   */
  #measure(frame: Frame, mark: Mark | undefined): void {
    const desk_us = this.#clock.at(nowPage_us());
    if (desk_us === undefined || (frame.flags.mark && mark === undefined)) return;
    this.glass.add(desk_us - this.#capture_us(frame, mark));
  }

  #capture_us(frame: Frame, mark: Mark | undefined): number {
    if (mark === undefined || this.vehicleOffset_us === undefined) return frame.capture_us;
    return unwrapTime_us(mark.time_us, frame.capture_us + this.vehicleOffset_us) - this.vehicleOffset_us;
  }
}

/** Returns the height of the mark, 0 if the picture is too small for one. */
function markHeight_px({ width, height }: ImageBitmap): number {
  const mark = MARK_ROWS * (markCell_px(width) ?? 0);
  return mark < height ? mark : 0;
}
