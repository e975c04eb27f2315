import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Controls, RELEASED_CONTROLS } from "../src/desk/input/controls";
import { Driver, type DriverFacts } from "../src/desk/input/driver";
import { Emergency } from "../src/desk/input/emergency";
import { Keyboard } from "../src/desk/input/keyboard";
import { Learner, type Mapping, type Pad, PadReader, parseMapping, STANDARD_MAPPING } from "../src/desk/input/mapping";
import { TickMeter } from "../src/desk/input/ticker";
import { listenToKeys } from "../src/desk/keys";

const PAD: Pad = { id: "pad", mapping: "standard", axes: [0, 0, 0, 0], buttons: Array<number>(17).fill(0) };
const axes = (...values: number[]): Pad => ({ ...PAD, axes: values });
const pressed = (...buttons: number[]): Pad => ({ ...PAD, buttons: PAD.buttons.map((_, at) => Number(buttons.includes(at))) });

describe("the keyboard", () => {
  test("moves steering and pedals at a limited rate, and the accelerator releases at once", () => {
    const keyboard = new Keyboard();
    expect([keyboard.press("ArrowLeft"), keyboard.press("KeyW"), keyboard.press("Space"), keyboard.press("KeyX")]).toEqual([true, true, true, false]);
    expect(keyboard.step(0.1)).toMatchObject({ steering: expect.closeTo(0.12), accelerator: expect.closeTo(0.1), deadMan: true });
    for (let tick = 0; tick < 200; tick += 1) keyboard.step(0.01);
    expect(keyboard.step(0.01)).toMatchObject({ steering: 1, accelerator: 1 });
    keyboard.release("ArrowLeft");
    keyboard.release("KeyW");
    expect(keyboard.step(0.1)).toMatchObject({ steering: expect.closeTo(0.76), accelerator: 0 });
  });

  test("left and right together steer to the centre", () => {
    const keyboard = new Keyboard();
    keyboard.press("KeyA");
    keyboard.press("ArrowRight");
    expect(keyboard.step(1).steering).toBe(0);
  });

  test("two keys of one control: releasing one keeps the other", () => {
    const keyboard = new Keyboard();
    keyboard.press("ArrowUp");
    keyboard.press("KeyW");
    keyboard.release("KeyW");
    expect(keyboard.step(0.1).accelerator).toBeGreaterThan(0);
  });

  test("without the focus, everything is released", () => {
    const keyboard = new Keyboard();
    keyboard.press("Space");
    keyboard.press("KeyW");
    keyboard.releaseAll();
    expect(keyboard.step(0.01)).toMatchObject({ deadMan: false, accelerator: 0 });
  });
});

describe("a gamepad", () => {
  test("has stick, triggers and shoulder button of the standard mapping", () => {
    const reader = new PadReader(STANDARD_MAPPING);
    reader.read(axes(0.3, 0, 0, 0));
    expect(reader.read(axes(-1, 0, 0, 0))).toMatchObject({ steering: 1, deadMan: false });
    expect(reader.read(pressed(5, 6))).toMatchObject({ deadMan: true, brake: 1, accelerator: 0, emergency: false });
    expect(reader.read(pressed(1)).emergency).toBe(true);
  });

  test("has a dead zone in the centre and the full range at the end", () => {
    const reader = new PadReader(STANDARD_MAPPING);
    reader.read(axes(0.5, 0, 0, 0));
    expect([0.08, -0.08, 1, -1].map((value) => reader.read(axes(value, 0, 0, 0)).steering)).toEqual([0, 0, -1, 1]);
    expect(Math.abs(reader.read(axes(0.3, 0, 0, 0)).steering)).toBeLessThan(0.15);
  });

  test("a missing axis or a value that is no number is at rest", () => {
    const reader = new PadReader(STANDARD_MAPPING);
    expect(reader.read({ ...PAD, axes: [], buttons: [] })).toMatchObject(RELEASED_CONTROLS);
    expect(reader.read(axes(Number.NaN, 0, 0, 0)).steering).toBe(0);
  });
});

describe("a steering wheel", () => {
  const WHEEL: Mapping = {
    wheel: true,
    steering: { kind: "axis", index: 0, rest: 0, full: -1 },
    accelerator: { kind: "axis", index: 2, rest: 1, full: -1 },
    brake: { kind: "axis", index: 3, rest: 1, full: -1 },
    deadMan: { kind: "button", index: 4, rest: 0, full: 1 },
    emergency: { kind: "button", index: 9, rest: 0, full: 1 },
  };

  test("is linear", () => {
    const reader = new PadReader(WHEEL);
    reader.read(axes(0, 0, 1, 1));
    expect(reader.read(axes(-0.25, 0, 0.5, 1))).toMatchObject({ steering: 0.25, accelerator: 0.25, brake: 0 });
  });

  test("a pedal that reports the middle until it is touched counts as released", () => {
    const reader = new PadReader(WHEEL);
    expect(reader.read(axes(0, 0, 0, 0))).toMatchObject({ accelerator: 0, brake: 0 });
    expect(reader.read(axes(0, 0, 0.97, 0))).toMatchObject({ accelerator: expect.closeTo(0.015), brake: 0 });
    expect(reader.read(axes(0, 0, 0, 0))).toMatchObject({ accelerator: 0.5, brake: 0 });
  });

  test("is set up by moving each control to its end and back", () => {
    const rest = axes(0.02, 1, 1, 1);
    const wheel = new Learner(rest);
    expect([axes(-0.4, 1, 1, 1), axes(-1, 1, 1, 1), axes(-0.5, 1, 1, 1)].map((pad) => wheel.step(pad))).toEqual([undefined, undefined, undefined]);
    expect(wheel.step(rest)).toEqual({ kind: "axis", index: 0, rest: 0.02, full: -1 });
    const pedal = new Learner(rest);
    pedal.step({ ...axes(0.02, 1, -0.98, 1), buttons: pressed(7).buttons });
    expect(pedal.step(rest)).toEqual({ kind: "axis", index: 2, rest: 1, full: -0.98 });
    const paddle = new Learner(rest);
    expect(paddle.step({ ...pressed(4), axes: rest.axes })).toBeUndefined();
    expect(paddle.step(rest)).toEqual({ kind: "button", index: 4, rest: 0, full: 1 });
  });

  test("a stored mapping is restored, a damaged one is not", () => {
    expect(parseMapping(JSON.stringify(WHEEL))).toEqual(WHEEL);
    for (const damaged of ["", "{", "{}", JSON.stringify({ ...WHEEL, brake: { kind: "axis", index: 3, rest: 1, full: 1 } }), JSON.stringify({ ...WHEEL, steering: { ...WHEEL.steering, index: -1 } })]) expect(parseMapping(damaged)).toBeUndefined();
  });
});

describe("the driver", () => {
  const FACTS: DriverFacts = { granted: true, attentive: true, speed_mps: 0, gear: "P" };
  const HELD: Controls = { steering: 0.5, accelerator: 0.6, brake: 0, deadMan: true };
  const step = (driver: Driver, controls: Controls, facts: Partial<DriverFacts> = {}) => driver.step(controls, { ...FACTS, ...facts }, "keyboard", 10, 20.4);
  const armed = (): Driver => {
    const driver = new Driver();
    step(driver, RELEASED_CONTROLS);
    step(driver, { ...RELEASED_CONTROLS, deadMan: true });
    return driver;
  };

  test("sends nothing without a grant", () => {
    const driver = new Driver();
    expect(step(driver, HELD, { granted: false, gear: "D" })).toBeUndefined();
    expect([driver.blocked, driver.gear]).toEqual(["no_grant", "D"]);
  });

  test("has no effect before the controls were released after the grant", () => {
    const driver = new Driver();
    expect(step(driver, HELD)).toMatchObject({ dead_man: false, accelerator: 0, seq: 1 });
    expect(driver.blocked).toBe("release_first");
    step(driver, { ...RELEASED_CONTROLS, deadMan: true });
    expect(driver.blocked).toBe("release_first");
    step(driver, RELEASED_CONTROLS);
    expect(step(driver, HELD)).toMatchObject({ dead_man: true, accelerator: 0.6, steering: 0.5, time_us: 20, page_us: 10 });
  });

  test("an accelerator that is pressed before the dead-man control has no effect", () => {
    const driver = new Driver();
    step(driver, RELEASED_CONTROLS);
    expect(step(driver, { ...HELD, deadMan: false })).toMatchObject({ dead_man: false, accelerator: 0 });
    expect(step(driver, HELD)).toMatchObject({ dead_man: false, accelerator: 0 });
    expect(driver.blocked).toBe("release_first");
  });

  test("the brake works without the dead-man control, and wins over the accelerator", () => {
    expect(step(new Driver(), { ...RELEASED_CONTROLS, brake: 0.7 })).toMatchObject({ brake: 0.7, dead_man: false });
    expect(step(armed(), { ...HELD, brake: 0.2 })).toMatchObject({ brake: 0.2, accelerator: 0, dead_man: true });
  });

  test("without focus the dead-man control has no effect, also afterwards until it is released", () => {
    const driver = armed();
    expect(step(driver, HELD)).toMatchObject({ dead_man: true });
    expect(step(driver, HELD, { attentive: false })).toMatchObject({ dead_man: false, accelerator: 0 });
    expect(step(driver, HELD)).toMatchObject({ dead_man: false });
  });

  test("a new grant needs released controls again", () => {
    const driver = armed();
    step(driver, HELD, { granted: false });
    expect(step(driver, HELD)).toMatchObject({ dead_man: false });
  });

  test("an emergency stop brakes fully until the grant has ended", () => {
    const driver = armed();
    driver.stop();
    expect(step(driver, HELD)).toMatchObject({ emergency: true, brake: 1, accelerator: 0, dead_man: false });
    step(driver, RELEASED_CONTROLS);
    expect(step(driver, HELD)).toMatchObject({ emergency: true });
    step(driver, HELD, { granted: false });
    step(driver, RELEASED_CONTROLS);
    expect(step(driver, HELD)).toMatchObject({ emergency: false, dead_man: true });
  });

  test("the gear changes at standstill only, one place at a time", () => {
    const driver = armed();
    expect([1, 1, 1, 1, -1].map((by) => (driver.shift(by, FACTS), driver.gear))).toEqual(["R", "N", "D", "D", "N"]);
    for (const speed_mps of [1, -1, null]) expect(driver.shift(1, { ...FACTS, speed_mps })).toBe(false);
    expect(driver.shift(1, { ...FACTS, granted: false })).toBe(false);
    expect(driver.gear).toBe("N");
  });
});

describe("the keys of the page", () => {
  class Key extends Event {
    readonly ctrlKey = false;
    readonly altKey = false;
    readonly metaKey = false;
    constructor(
      type: "keydown" | "keyup",
      readonly code: string,
      readonly repeat = false,
    ) {
      super(type, { cancelable: true });
    }
  }
  let drives = false;
  let emergencies = 0;
  let keyboard: Keyboard;
  const down = (code: string, repeat = false): boolean => window.dispatchEvent(new Key("keydown", code, repeat));
  const held = (): boolean => keyboard.step(0.01).deadMan;

  beforeEach(() => {
    vi.stubGlobal("window", new EventTarget());
    vi.stubGlobal("document", Object.assign(new EventTarget(), { querySelector: () => null }));
    vi.stubGlobal("HTMLInputElement", class {});
    [drives, emergencies, keyboard] = [false, 0, new Keyboard()];
    const ignore = (): void => {};
    listenToKeys(keyboard, { emergency: () => (emergencies += 1), shift: ignore, toggleLayout: ignore, chooseView: ignore, drives: () => drives });
  });
  afterEach(() => void vi.unstubAllGlobals());

  test("a dead-man key that is held through a grant has no effect until it is released and pressed again", () => {
    down("Space");
    drives = true;
    // Prevented: the repetition must not activate a button.
    expect([down("Space", true), held()]).toEqual([false, false]);
    window.dispatchEvent(new Key("keyup", "Space"));
    expect([down("Space"), held()]).toEqual([false, true]);
  });

  test("nor has one that is held through a loss of the focus", () => {
    drives = true;
    down("Space");
    expect(held()).toBe(true);
    window.dispatchEvent(new Event("blur"));
    down("Space", true);
    expect(held()).toBe(false);
  });

  test("a held emergency key is one emergency stop", () => {
    for (const repeat of [false, true, true]) down("Backspace", repeat);
    expect(emergencies).toBe(1);
  });
});

describe("the emergency stop", () => {
  test("is repeated until the vehicle confirms it", () => {
    const emergency = new Emergency();
    expect(emergency.step("driving", null, true, 0)).toBe(false);
    emergency.press(0);
    expect([0, 10, 190, 200, 390, 400].map((at) => emergency.step("driving", null, true, at))).toEqual([true, false, false, true, false, true]);
    expect(emergency.step("stopped", "link_lost", true, 410)).toBe(false);
    expect(emergency.status).toBe("sent");
    emergency.step("stopped", "emergency_stop", true, 420);
    expect(emergency.status).toBe("confirmed");
    emergency.step("ready", null, true, 5_000);
    expect(emergency.status).toBe("ready");
  });

  test("without a connection it is undelivered, and sent after a short interruption only", () => {
    const emergency = new Emergency();
    emergency.press(0);
    emergency.step("driving", null, false, 0);
    expect(emergency.status).toBe("undelivered");
    expect(emergency.step("driving", null, true, 1_000)).toBe(true);
    const late = new Emergency();
    late.press(0);
    late.step(undefined, null, false, 0);
    expect([late.step(undefined, null, true, 3_001), late.status]).toEqual([false, "undelivered"]);
    expect([late.step("driving", null, true, 3_002), late.status]).toEqual([false, "ready"]);
  });

  test("a stop whose confirmation arrives after a long interruption is confirmed", () => {
    const emergency = new Emergency();
    emergency.press(0);
    expect(emergency.step("driving", null, true, 0)).toBe(true);
    emergency.step(undefined, null, false, 100);
    emergency.step(undefined, null, true, 9_000);
    expect([emergency.step("stopped", "emergency_stop", true, 9_010), emergency.status]).toEqual([false, "confirmed"]);
  });

  test("a confirmed stop stays confirmed without a connection, and is not sent again", () => {
    const emergency = new Emergency();
    emergency.press(0);
    emergency.step("driving", null, true, 0);
    emergency.step("stopped", "emergency_stop", true, 50);
    const steps: Parameters<Emergency["step"]>[] = [
      [undefined, null, false, 600],
      [undefined, null, true, 700],
      ["stopped", "emergency_stop", true, 750],
    ];
    for (const step of steps) expect([emergency.step(...step), emergency.status]).toEqual([false, "confirmed"]);
    expect([emergency.step("ready", null, true, 800), emergency.status]).toEqual([false, "ready"]);
  });
});

test("the meter has the rate and the longest gap of a second", () => {
  const meter = new TickMeter(0);
  for (let at = 10; at <= 500; at += 10) meter.tick(at);
  for (let at = 580; at <= 1_000; at += 10) meter.tick(at);
  expect([meter.rate_hz, meter.gapMax_ms]).toEqual([93, 80]);
});
