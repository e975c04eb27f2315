// Periodic requests: never two at the same time, and the pause starts when the answer has arrived.

import { ApiError, get } from "./client";

export interface Poll {
  stop(): void;
}

/** A poll that can be hastened. */
export interface HastyPoll extends Poll {
  /** Sends the next request as soon as the shortest pause allows. */
  soon(): void;
}

/** Repeats a request until it succeeds. */
export function untilAnswered<T>(path: string, period_ms: number, onAnswer: (answer: T) => void): Poll {
  const take = (answer: T): void => {
    asking.stop();
    onAnswer(answer);
  };
  const asking = poll<T>(path, period_ms, take, () => undefined);
  return asking;
}

/** Repeats a request. Between an answer and the next request there are at least `pause_ms`. */
export function poll<T>(path: string, period_ms: number, onAnswer: (answer: T) => void, onError: (error: ApiError) => void, pause_ms = 50): HastyPoll {
  let stopped = false;
  let hasty = false;
  let timer = 0;
  let answered_ms = -Infinity;
  const schedule = (wait_ms: number): void => {
    clearTimeout(timer);
    timer = window.setTimeout(ask, wait_ms);
  };
  const ask = async (): Promise<void> => {
    timer = 0;
    hasty = false;
    const started_ms = performance.now();
    const answer = await get<T>(path).catch((error: unknown) => error);
    if (stopped) return;
    answered_ms = performance.now();
    schedule(hasty ? pause_ms : Math.max(pause_ms, period_ms - (answered_ms - started_ms)));
    if (answer instanceof ApiError) onError(answer);
    else if (answer instanceof Error) throw answer;
    else onAnswer(answer as T);
  };
  void ask();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
    soon() {
      if (stopped || hasty) return;
      hasty = true;
      // A timer of 0 means that a request is in flight; its answer schedules the next one.
      if (timer !== 0) schedule(Math.max(0, answered_ms + pause_ms - performance.now()));
    },
  };
}
