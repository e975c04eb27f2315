import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { HOPS_DRAWN_MAX } from "../src/limits";
import { EVENT_COLOURS, KIND_BANDS, LINES, SIGNAL_COLOURS, SPEED_BANDS } from "../src/palette";
import { closest, contrast, lab, seen, VISIONS } from "./colours";

describe.each(Object.entries(VISIONS))("with %s", (_, vision) => {
  test("hops and message types differ clearly", () => {
    expect(LINES).toHaveLength(HOPS_DRAWN_MAX);
    expect(closest(LINES, vision)).toBeGreaterThan(28);
  });

  test("kinds of stations differ clearly", () => {
    expect(closest(KIND_BANDS.map(({ colour }) => colour), vision)).toBeGreaterThan(28);
  });

  test("speeds differ clearly, and slow ones are darker", () => {
    const speeds = SPEED_BANDS.map(({ colour }) => colour);
    expect(closest(speeds, vision)).toBeGreaterThan(28);
    const lightness = speeds.map((colour) => lab(seen(colour, vision))[0]);
    expect(lightness).toEqual([...lightness].sort((a, b) => a - b));
  });

  test("stop, caution and go differ", () => {
    const { stop_and_remain, protected_clearance, protected_movement_allowed, dark } = SIGNAL_COLOURS;
    expect(closest([stop_and_remain, protected_clearance, protected_movement_allowed, dark], vision)).toBeGreaterThan(18);
  });

  test("active events differ from ended ones", () => {
    expect(closest([EVENT_COLOURS.active, EVENT_COLOURS.cancelled], vision)).toBeGreaterThan(28);
  });
});

test("texts have a contrast of 4.5 to 1 on every background, symbols one of 3 to 1", () => {
  const style = readFileSync(new URL("../src/style.css", import.meta.url), "utf8");
  const variable = (name: string): string => new RegExp(`--${name}: (#[0-9a-f]{6});`).exec(style)?.[1] ?? "";
  for (const ground of ["ground", "panel", "raised"]) {
    for (const text of ["text", "soft", "faint", "accent", "bad", "good", "warn"]) {
      expect(contrast(variable(text), variable(ground)), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    }
  }
  for (const colour of [...LINES, ...KIND_BANDS.map(({ colour }) => colour), ...SPEED_BANDS.map(({ colour }) => colour)]) {
    expect(contrast(colour, variable("panel")), colour).toBeGreaterThanOrEqual(3);
    expect(contrast(colour, variable("ground")), colour).toBeGreaterThanOrEqual(3);
  }
});
