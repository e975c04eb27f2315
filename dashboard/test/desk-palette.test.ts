import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { closest, contrast, VISIONS } from "./colours";

const style = readFileSync(new URL("../src/desk/style.css", import.meta.url), "utf8");

describe.each(["dark", "light"])("the %s theme", (theme) => {
  const block = new RegExp(`:root\\[data-theme="${theme}"\\] \\{([^}]*)\\}`).exec(style)?.[1] ?? "";
  const variable = (name: string): string => new RegExp(`--${name}: (#[0-9a-f]{6});`).exec(block)?.[1] ?? "";

  test("texts have a contrast of 4.5 to 1 on every background", () => {
    for (const ground of ["ground", "panel", "raised"]) {
      for (const text of ["text", "soft", "faint", "accent", "bad", "good", "warn"]) expect(contrast(variable(text), variable(ground)), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    }
  });

  test("texts on a state's colour have a contrast of 4.5 to 1", () => {
    for (const state of ["good", "warn", "bad", "accent"]) expect(contrast(variable("on-state"), variable(state)), state).toBeGreaterThanOrEqual(4.5);
  });

  test("lines and borders of controls have a contrast of 3 to 1 and 2 to 1", () => {
    for (const line of ["line-rtt", "line-glass", "line-loss"]) expect(contrast(variable(line), variable("panel")), line).toBeGreaterThanOrEqual(3);
    for (const ground of ["ground", "panel"]) expect(contrast(variable("hair-strong"), variable(ground))).toBeGreaterThanOrEqual(1.8);
  });

  test.each(Object.entries(VISIONS))("states and lines differ with %s", (_, vision) => {
    expect(closest(["good", "warn", "bad"].map(variable), vision)).toBeGreaterThan(18);
    expect(closest(["line-rtt", "line-glass", "line-loss"].map(variable), vision)).toBeGreaterThan(18);
  });
});
