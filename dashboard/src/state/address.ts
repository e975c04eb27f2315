// The selection in the fragment of the page's URL: `#station=1001` or `#event=1001-7`, so that a link opens the same object.

/** The object that the reader selected. */
export type Selection = { kind: "station"; id: number } | { kind: "event"; id: string };

/** Returns the selection of a fragment, or `undefined` if it names none. */
export function readSelection(fragment: string): Selection | undefined {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const station = parameters.get("station");
  if (station !== null && /^\d{1,10}$/.test(station)) return { kind: "station", id: Number(station) };
  const event = parameters.get("event");
  return event !== null && /^\d{1,10}-\d{1,5}$/.test(event) ? { kind: "event", id: event } : undefined;
}

/** Returns the fragment of a selection; empty without a selection. */
export function writeSelection(selection: Selection | undefined): string {
  return selection === undefined ? "" : `#${selection.kind}=${selection.id}`;
}
