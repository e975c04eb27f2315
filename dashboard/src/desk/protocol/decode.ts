// Decoders of JSON values. A decoder returns the value, or throws `Malformed` with the place and the expectation.

export class Malformed extends Error {}

export type Decoder<T> = (value: unknown, at: string) => T;
export type Decoded<D> = D extends Decoder<infer T> ? T : never;

export const bool: Decoder<boolean> = (value, at) => (typeof value === "boolean" ? value : fail(at, "true or false"));

export function number(min: number, max: number): Decoder<number> {
  return (value, at) => (typeof value === "number" && value >= min && value <= max ? value : fail(at, `a number of ${min} to ${max}`));
}

export function integer(min: number, max: number): Decoder<number> {
  return (value, at) => (Number.isInteger(value) && (value as number) >= min && (value as number) <= max ? (value as number) : fail(at, `an integer of ${min} to ${max}`));
}

export function text(max: number): Decoder<string> {
  return (value, at) => (typeof value === "string" && value.length <= max ? value : fail(at, `a text of at most ${max} characters`));
}

export function oneOf<const T extends string>(...values: readonly T[]): Decoder<T> {
  return (value, at) => (values.includes(value as T) ? (value as T) : fail(at, values.join(" | ")));
}

/** Decodes an unknown text as `fallback`: a later version may add values. */
export function oneOfOr<const T extends string>(fallback: T, ...values: readonly T[]): Decoder<T> {
  return (value, at) => (typeof value === "string" ? (values.includes(value as T) ? (value as T) : fallback) : fail(at, values.join(" | ")));
}

/** `null`, or a missing member: unknown. */
export function nullable<T>(decoder: Decoder<T>): Decoder<T | null> {
  return (value, at) => (value === null || value === undefined ? null : decoder(value, at));
}

export function list<T>(max: number, decoder: Decoder<T>): Decoder<T[]> {
  return (value, at) => {
    if (!Array.isArray(value) || value.length > max) fail(at, `a list of at most ${max} items`);
    return (value as unknown[]).map((item, index) => decoder(item, `${at}[${index}]`));
  };
}

export function pair<T>(decoder: Decoder<T>): Decoder<readonly [T, T]> {
  return (value, at) => {
    if (!Array.isArray(value) || value.length !== 2) fail(at, "a list of two items");
    const [first, second] = value as [unknown, unknown];
    return [decoder(first, `${at}[0]`), decoder(second, `${at}[1]`)];
  };
}

type Members = Readonly<Record<string, Decoder<unknown>>>;

/** Members that `members` does not name are ignored: a later version may add some. */
export function object<M extends Members>(members: M): Decoder<{ [K in keyof M]: Decoded<M[K]> }> {
  const entries = Object.entries(members);
  return (value, at) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) fail(at, "an object");
    const found = value as Record<string, unknown>;
    return Object.fromEntries(entries.map(([name, decoder]) => [name, decoder(found[name], at === "" ? name : `${at}.${name}`)])) as { [K in keyof M]: Decoded<M[K]> };
  };
}

function fail(at: string, expected: string): never {
  throw new Malformed(`${at === "" ? "the message" : at}: expected ${expected}`);
}
