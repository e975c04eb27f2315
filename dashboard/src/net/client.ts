// Requests to the API: the answer as JSON, or an ApiError.

import type { Problem } from "../api";
import { REQUEST_TIMEOUT_MS } from "../limits";

export class ApiError extends Error {
  /** HTTP status; 0 if there was no answer. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function get<T>(path: string): Promise<T> {
  const response = await fetch(path, {
    headers: { accept: "application/json" },
    cache: "no-store",
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
  }).catch((error: unknown) => {
    const timeout = error instanceof DOMException && error.name === "TimeoutError";
    throw new ApiError(0, timeout ? `no answer within ${REQUEST_TIMEOUT_MS / 1_000} s` : "the node does not answer");
  });
  if (!response.ok) throw new ApiError(response.status, await reason(response));
  try {
    return (await response.json()) as T;
  } catch {
    throw new ApiError(response.status, `${path} did not answer with JSON`);
  }
}

async function reason(response: Response): Promise<string> {
  try {
    const problem = (await response.json()) as Problem;
    return problem.detail ?? problem.title;
  } catch {
    return `${response.status} ${response.statusText}`;
  }
}
