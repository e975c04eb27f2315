// Asks for one thing again and again; never two requests at once, and the pause starts when the answer is there.

import { ApiError, get } from "./client";

export interface Poll {
  stop(): void;
}

/** Asks until there is an answer. */
export function untilAnswered<T>(path: string, period_ms: number, onAnswer: (answer: T) => void): Poll {
  const take = (answer: T): void => {
    asking.stop();
    onAnswer(answer);
  };
  const asking = poll<T>(path, period_ms, take, () => undefined);
  return asking;
}

export function poll<T>(path: string, period_ms: number, onAnswer: (answer: T) => void, onError: (error: ApiError) => void): Poll {
  let stopped = false;
  let timer = 0;
  const ask = async (): Promise<void> => {
    const started = performance.now();
    const answer = await get<T>(path).catch((error: unknown) => error);
    if (stopped) return;
    timer = window.setTimeout(ask, Math.max(50, period_ms - (performance.now() - started)));
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
  };
}
