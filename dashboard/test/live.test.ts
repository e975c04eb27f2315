import { expect, test } from "vitest";
import { initialLive, type LiveInput, reduceLive, reopenDelay_ms } from "../src/net/live";

const after = (...inputs: [LiveInput, number][]) => inputs.reduce((state, [input, at_ms]) => reduceLive(state, input, at_ms), initialLive(0));

test("connects, receives, breaks, comes back", () => {
  const live = after([{ kind: "open" }, 10], [{ kind: "message", id: "7" }, 20]);
  expect(live).toMatchObject({ phase: "live", since_ms: 10, lastMessage_ms: 20, cursor: "7", received: 1 });
  const broken = reduceLive(reduceLive(live, { kind: "broken" }, 30), { kind: "broken" }, 40);
  expect(broken).toMatchObject({ phase: "reconnecting", since_ms: 30, attempts: 2, cursor: "7", lastMessage_ms: 20 });
  expect(reduceLive(broken, { kind: "open" }, 50)).toMatchObject({ phase: "live", since_ms: 50, attempts: 0 });
});

test("continues from the id of a restarted node", () => {
  const live = after([{ kind: "message", id: "a1-7" }, 20], [{ kind: "broken" }, 30], [{ kind: "open" }, 40], [{ kind: "restarted", id: "b2-0" }, 50]);
  expect(live).toMatchObject({ phase: "live", cursor: "b2-0", received: 1, lost: 0, lastMessage_ms: 20 });
});

test("counts lost and malformed events without a change of phase", () => {
  const live = after([{ kind: "open" }, 1], [{ kind: "lost", count: 40 }, 2], [{ kind: "lost", count: 2 }, 3], [{ kind: "malformed" }, 4]);
  expect(live).toMatchObject({ phase: "live", since_ms: 1, lost: 42, malformed: 1 });
});

test("an event without an id keeps the cursor", () => {
  expect(after([{ kind: "message", id: "5" }, 1], [{ kind: "message", id: "" }, 2]).cursor).toBe("5");
});

test("waits longer each time, up to a limit", () => {
  expect([0, 1, 2, 3, 99].map(reopenDelay_ms)).toEqual([1_000, 1_000, 2_000, 5_000, 5_000]);
});
