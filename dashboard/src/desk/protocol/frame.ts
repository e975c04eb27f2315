// The binary message of a camera frame: docs/reference/teleop-desk-websocket.md, "Camera frame".
//
//    0  type u8          1  version u8       2  camera u8        3  codec u8
//    4  flags u16                            6  header length u16
//    8  frame number u32                    12  missed u32
//   16  capture time u64, us, TAI           24  arrival time u64, us, TAI
//   32  deadline u64, us, TAI               40  width u16, height u16
//   44  uncertainty u32, us                 48  picture

import { FRAME_OCTETS_MAX } from "../limits";

export interface Frame {
  /** Index of the camera, 0 to 3. */
  camera: number;
  flags: FrameFlags;
  /** Frame number, 0 to 2^32 - 1; it wraps. */
  number: number;
  /** Frames of this camera that did not arrive before their deadline since the desk started, 0 to 2^32 - 1. */
  missed: number;
  /** Times in microseconds of the desk's clock (TAI). */
  capture_us: number;
  arrival_us: number;
  /** `undefined`: no deadline. */
  deadline_us: number | undefined;
  width_px: number;
  height_px: number;
  /** Uncertainty of the capture time, because it was stamped by the vehicle's clock; `undefined`: unknown. */
  uncertainty_us: number | undefined;
  /** The picture as JPEG. */
  picture: Uint8Array<ArrayBuffer>;
}

export interface FrameFlags {
  /** The picture carries the mark. */
  mark: boolean;
  /** The quality is reduced because the link is slow. */
  reduced: boolean;
  /** Lost parts were repaired. */
  repaired: boolean;
}

export type FrameFault = "short" | "type" | "version" | "camera" | "codec" | "header_length" | "empty" | "long";

export const HEADER_OCTETS = 48;
export const CAMERAS_MAX = 4;
const TYPE_FRAME = 1;
const VERSION = 1;
const CODEC_JPEG = 1;
const UNKNOWN_U32 = 0xffff_ffff;
const FLAGS = { mark: 1, reduced: 2, repaired: 4 } as const;

/** Parses a binary message. The picture is a view of `message`, not a copy. */
export function parseFrame(message: ArrayBuffer): Frame | FrameFault {
  if (message.byteLength < HEADER_OCTETS) return "short";
  const view = new DataView(message);
  const fault = checkHeader(view);
  if (fault !== undefined) return fault;
  const deadline_us = readU64(view, 32);
  const uncertainty_us = view.getUint32(44);
  return {
    camera: view.getUint8(2),
    flags: readFlags(view.getUint16(4)),
    number: view.getUint32(8),
    missed: view.getUint32(12),
    capture_us: readU64(view, 16),
    arrival_us: readU64(view, 24),
    deadline_us: deadline_us === 0 ? undefined : deadline_us,
    width_px: view.getUint16(40),
    height_px: view.getUint16(42),
    uncertainty_us: uncertainty_us === UNKNOWN_U32 ? undefined : uncertainty_us,
    picture: new Uint8Array(message, view.getUint16(6)),
  };
}

/** Returns the binary message of a frame. */
export function encodeFrame(frame: Frame): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(HEADER_OCTETS + frame.picture.length);
  const view = new DataView(message.buffer);
  view.setUint8(0, TYPE_FRAME);
  view.setUint8(1, VERSION);
  view.setUint8(2, frame.camera);
  view.setUint8(3, CODEC_JPEG);
  view.setUint16(4, writeFlags(frame.flags));
  view.setUint16(6, HEADER_OCTETS);
  view.setUint32(8, frame.number);
  view.setUint32(12, frame.missed);
  writeU64(view, 16, frame.capture_us);
  writeU64(view, 24, frame.arrival_us);
  writeU64(view, 32, frame.deadline_us ?? 0);
  view.setUint16(40, frame.width_px);
  view.setUint16(42, frame.height_px);
  view.setUint32(44, frame.uncertainty_us ?? UNKNOWN_U32);
  message.set(frame.picture, HEADER_OCTETS);
  return message;
}

function checkHeader(view: DataView): FrameFault | undefined {
  if (view.getUint8(0) !== TYPE_FRAME) return "type";
  if (view.getUint8(1) !== VERSION) return "version";
  if (view.getUint8(2) >= CAMERAS_MAX) return "camera";
  if (view.getUint8(3) !== CODEC_JPEG) return "codec";
  const header = view.getUint16(6);
  // A later version may append fields to the header.
  if (header < HEADER_OCTETS || header > view.byteLength) return "header_length";
  if (header === view.byteLength) return "empty";
  return view.byteLength > FRAME_OCTETS_MAX ? "long" : undefined;
}

function readFlags(bits: number): FrameFlags {
  return { mark: (bits & FLAGS.mark) !== 0, reduced: (bits & FLAGS.reduced) !== 0, repaired: (bits & FLAGS.repaired) !== 0 };
}

function writeFlags(flags: FrameFlags): number {
  return (flags.mark ? FLAGS.mark : 0) | (flags.reduced ? FLAGS.reduced : 0) | (flags.repaired ? FLAGS.repaired : 0);
}

/** Times in microseconds are below 2^53 until the year 2255, so a number is exact. */
function readU64(view: DataView, at: number): number {
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4);
}

function writeU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, Math.floor(value / 2 ** 32));
  view.setUint32(at + 4, value % 2 ** 32);
}
